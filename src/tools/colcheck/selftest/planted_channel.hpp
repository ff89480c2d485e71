// A channel that does every collective itself, with the messages of another channel and with one mistake.
//
// Every rank sends to every other rank what that rank needs, and combines what has arrived in rank order. The code is
// as simple as possible, so that a mistake is one line, and the channel without a mistake is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <col/backend.hpp>

#include "colcheck/engine/memory.hpp"
#include "colcheck/selftest/arithmetic.hpp"
#include "colcheck/selftest/bug.hpp"
#include "colcheck/selftest/reordered_receives.hpp"
#include "colcheck/selftest/traffic.hpp"

namespace col::colcheck {

class PlantedChannel final : public Channel {
 public:
  PlantedChannel(Bug bug, std::unique_ptr<Channel> inner, int rank, int size)
      : bug_(bug), inner_(std::move(inner)), rank_(rank), size_(size) {}

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  std::optional<int> test(Ticket ticket) override;
  int wait(Ticket ticket, WaitContext& wait) override;
  std::span<const NativeEntry> native_entries() const override;
  Ticket start_native(const col::Request& request, WaitContext& wait) override;
  void abort(const Error& cause) noexcept override { inner_->abort(cause); }

 private:
  bool has(Bug bug) const { return bug_ == bug; }
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void clear_output(const col::Request& request, const Traffic& traffic) const;
  void stage(const col::Request& request, const Traffic& traffic, const Arithmetic& arithmetic);
  void stage_in_one_buffer();
  void exchange(const col::Request& request, const Traffic& traffic, DType dtype, WaitContext& wait);
  const Bytes& own_block(DType dtype, Op::Kind kind);
  Bytes folded(const Arithmetic& arithmetic, std::size_t count) const;
  void write_blocks(const col::Request& request, const Traffic& traffic) const;
  void write(TensorView output, std::size_t offset, const Bytes& block) const;
  void harm_buffers(const col::Request& request, int root) const;

  const Bug bug_;
  const std::unique_ptr<Channel> inner_;
  const int rank_, size_;
  // For the call in progress, by rank. They are members, because messages may still move after a call has failed.
  std::vector<Bytes> outgoing_, incoming_;
  std::vector<int> order_;  // the ranks whose block has arrived; reductions combine in this order
  // for stale_scratch: by bytes, type, and whether the operator is a user's
  std::map<std::tuple<std::size_t, DType, bool>, Bytes> kept_;
  ReorderedReceives reordered_;
};

}  // namespace col::colcheck

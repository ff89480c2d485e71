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

#include <col/channel.hpp>

#include "colcheck/engine/memory.hpp"
#include "colcheck/selftest/arithmetic.hpp"
#include "colcheck/selftest/planted_backend.hpp"

namespace col::colcheck {

// ---- Traffic (traffic.cpp)
//
// Which elements go from which rank to which rank in the simplest form of a collective: each rank sends to every other
// rank what that rank needs, in one message.

// Elements of one of a request's buffers.
struct Block {
  std::size_t offset = 0, count = 0;
};

// One rank's part. Both lists are in rank order and have an entry for the rank itself; nothing where nothing goes. A
// block of no elements does go: ranks meet by it.
struct Traffic {
  std::vector<std::optional<Block>> to;    // of source_of(request)
  std::vector<std::optional<Block>> from;  // of the output; in reductions, the elements to be combined
};

Traffic traffic_of(const col::Request& request, int rank, int size);
// In the tree's order, the elements of one contribution. Requires: the shares.
std::size_t length_of_one(const col::Request& request, int rank, int size);

// What a rank sends from.
ConstTensorView source_of(const col::Request& request);
// The type of the request's elements, also on a rank where one of the two buffers has no meaning.
DType dtype_of(const col::Request& request);

// ---- Messages

// Receives that are posted only at a wait, and not in the order of the requests: of two with the same slot and length,
// the later one gets the first message.
class ReorderedReceives {
 public:
  // Remembers the receive. The ticket is special: translate() knows it, the channel does not.
  Ticket add(int peer, std::uint64_t slot, TensorView data);
  // Posts all remembered receives.
  void post(Channel& channel);
  // The channel's ticket for a posted one of add()'s tickets; any other ticket unchanged.
  Ticket translate(Ticket ticket) const;
  // The ticket has been done.
  void forget(Ticket ticket) { posted_.erase(ticket.id); }

 private:
  struct Receive {
    std::uint64_t id;
    int peer;
    std::uint64_t slot;
    TensorView data;
  };
  std::vector<Receive> waiting_;
  std::map<std::uint64_t, Ticket> posted_;  // by the id that was given out
  std::uint64_t next_ = 0;
};

// ---- The channel

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
  Bytes folded_in_tree(const Arithmetic& arithmetic, std::span<const std::size_t> shares, std::size_t count) const;
  static Bytes tree_of(const Arithmetic& arithmetic, std::vector<Bytes> level, std::size_t count);
  void write_tree(const col::Request& request, const Arithmetic& arithmetic) const;
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

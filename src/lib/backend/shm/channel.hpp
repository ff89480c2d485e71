// The shared-memory channel: messages and collectives between ranks of one machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/channel_checks.hpp"
#include "backend/shm/engine.hpp"
#include "backend/shm/native/collectives.hpp"
#include "backend/shm/segment/names.hpp"
#include "backend/shm/segment/segment.hpp"
#include "core/fork_guard.hpp"

namespace col::shm_backend {

class ShmChannel final : public Channel,
                         public backend::ImmediateOps,
                         public backend::PrepareOps,
                         public backend::PartsOps,
                         public backend::AllocationOps,
                         public backend::CommonMemoryOps,
                         public backend::ReasonOps,
                         public backend::NearOps,
                         private Attendant {
 public:
  // `quota`: as for Segment::tell_processors().
  ShmChannel(std::string group, int rank, std::shared_ptr<Segment> segment,
             std::optional<std::uint32_t> quota = std::nullopt, Names names = {});
  // Tells the peers that this rank has left. They can still receive what it sent. In a process that was forked after
  // the channel was made, it tells them nothing.
  ~ShmChannel() override;

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  bool send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept override;
  bool receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept override;
  std::unique_ptr<backend::PreparedNative> prepare(const Request& request) override;
  Ticket post_filling_send(int peer, std::uint64_t slot, ConstTensorView data,
                           std::function<std::uint64_t()> filled) override;
  std::uint64_t moved(Ticket ticket) override { return find(ticket).moved; }
  std::optional<int> test(Ticket ticket) override;
  int wait(Ticket ticket, WaitContext& wait) override;
  std::span<const NativeEntry> native_entries() const override { return shm_backend::native_entries(); }
  Ticket start_native(const Request& request, WaitContext& wait) override;
  void native(const Request& request, WaitContext& wait) override;
  std::string how(const Request& request) const override;
  std::shared_ptr<void> allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait) override;
  void abort(const Error& cause) noexcept override;
  bool has_pool() const override { return segment_->has_pool(); }
  std::optional<Reserved> reserve(const ConnectRequest& request) override;
  std::unique_ptr<Channel> open(std::uint64_t place, const ConnectRequest& request) override;
  std::optional<int> post_farewell(std::string_view words) override;
  std::optional<std::string> farewell_of(int rank) const override { return segment_->farewell_of(rank); }
  void progress() override;
  Probed probe(std::span<const int> peers, std::uint64_t slot, std::size_t bytes) override;
  void wait_until(const Awaited& awaited, WaitContext& wait) override;
  void ring() noexcept override;

 private:
  class Prepared;

  void attend() override;
  void enter(const char* call) const;
  bool is_usable() const noexcept { return !fork_guard_.is_forked_child() && !cause_.is_set(); }
  Operation& find(Ticket ticket);
  [[noreturn]] void fail(const Error& error);
  template <class Body>
  auto guarded(Body body);
  template <class Body>
  auto natively(const char* call, Body body);
  std::optional<std::uint64_t> native_number(Ticket ticket) const;

  bool step(Operation& operation);
  void wait_until_done(Operation& operation, WaitContext& wait);
  template <class Step, class Tell, class MaySleep>
  void wait_for(Step step, Tell tell, MaySleep may_sleep, bool polls, WaitContext& wait);
  int finish(Operation& operation) noexcept;
  int who_left(const Operation& operation) const noexcept;
  bool is_left(int rank) const noexcept;
  bool keeps_processor() noexcept;
  void throw_if_ended() const;

  const std::string group_;
  const int rank_;
  const Names names_;
  const core::ForkGuard fork_guard_;
  const std::shared_ptr<Segment> segment_;  // shared with the other ranks that are threads of this process
  Engine engine_;
  SymmetricHeap heap_;
  Collectives collectives_;
  backend::FirstCause cause_;
  Yielding yielding_;
  std::optional<bool> are_apart_;  // once all ranks have told where they run
};

}  // namespace col::shm_backend

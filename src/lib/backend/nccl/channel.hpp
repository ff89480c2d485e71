// The NCCL channel: collectives and messages between ranks that have one GPU each. Buffers are in the memory of this
// rank's GPU.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "backend/capabilities.hpp"
#include "backend/channel_checks.hpp"
#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"
#include "backend/nccl/known_memory.hpp"
#include "backend/nccl/multi_channel.hpp"
#include "backend/nccl/native.hpp"
#include "backend/nccl/registration.hpp"
#include "backend/nccl/window_memory.hpp"

namespace col::nccl_backend {

class NcclChannel final : public Channel, public DeviceOps, public backend::AllocationOps, public backend::HoldingOps {
 public:
  // `cause`: shared with the channels that share its communicator's connections, because NCCL ends the work of all of
  // them when it ends that of one.
  NcclChannel(NcclMultiChannel::Place place, std::unique_ptr<GpuDevice> device,
              std::unique_ptr<Communicator> communicator,
              std::shared_ptr<backend::FirstCause> cause = std::make_shared<backend::FirstCause>());
  ~NcclChannel() override;

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  std::optional<int> test(Ticket ticket) override;
  std::optional<int> look(Ticket ticket) override;
  void hand_over() override;
  bool awaits_capture() const override;
  int wait(Ticket ticket, WaitContext& wait) override;
  Device device() const override { return {Device::Type::cuda, device_->ordinal()}; }
  void check(const Request& request) const override;
  bool is_captured(Stream stream) const override;
  void post_after(Stream stream) override;
  std::span<const NativeEntry> native_entries() const override { return native_.entries(); }
  Ticket start_native(const Request& request, WaitContext& wait) override;
  void native(const Request& request, WaitContext& wait) override;
  std::shared_ptr<const DeviceEnd> end_of(Ticket ticket, WaitContext& wait) override;
  std::vector<Ticket> start_together(std::span<const Request* const> requests, WaitContext& wait) override;
  std::shared_ptr<void> register_memory(void* memory, std::size_t bytes, WaitContext& wait) override;
  void release_memory(const std::shared_ptr<void>& registration, WaitContext& wait) override;
  std::shared_ptr<void> allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait) override;
  bool can_split() const noexcept override;
  std::unique_ptr<Channel> split(std::span<const int> ranks, const ConnectRequest& request, WaitContext& wait) override;
  MultiChannel* multi() override { return multi_.get(); }
  void abort(const Error& cause) noexcept override;

 private:
  // A posted send or receive, or a started collective. Posted messages go to NCCL together, as a group. A send alone
  // would block the stream until its receive comes, and it would also block a receive that the peer waits for first.
  struct Post {
    int peer = 0;
    ConstTensorView send = {};
    TensorView receive = {};
    bool is_send = false;
    bool recorded = false;      // into a graph: it runs when the graph is launched, and nothing here waits for it
    CUstream stream = nullptr;  // of a collective
    // Of the group that it is part of; null before that, and of what is in a graph until somebody asks.
    std::shared_ptr<GpuEvent> ended = {};
  };

  Ticket post(const char* call, Post post);
  void check_memory(const char* call, ConstTensorView data) const;
  void give_posts(std::uint64_t last);
  void note_start();
  void start_posts(WaitContext& wait);
  void await_default(WaitContext& wait) const;
  std::optional<int> test(Ticket ticket, bool hands_over);
  int take(std::unordered_map<std::uint64_t, Post>::iterator post);
  std::shared_ptr<GpuEvent> record(CUstream stream);
  CUstream stream_of(const Request& request);
  void put_after(CUstream other);
  template <class Queued>  // GpuEvent or GpuStream
  void wait_for(const Queued& queued, WaitContext& wait);
  [[noreturn]] void fail(const Error& error);
  // How a body of guarded() gets the device's context: before it begins, or by itself.
  enum class Current : bool { made, by_itself };
  template <class Body>
  auto guarded(const char* call, Body body, Current context = Current::made);
  void run_guarded(std::string_view call, const std::function<void()>& body);
  void throw_if_broken() const;
  std::vector<Communicator*> communicators() const;
  bool deregister();
  void abort_communicators() noexcept;
  void forget() noexcept;

  const std::shared_ptr<backend::FirstCause> cause_;  // shared: see the constructor
  const std::string group_;
  const int rank_, size_;
  const pid_t pid_;
  std::shared_ptr<GpuDevice> device_;  // shared: with the ends of operations
  mutable KnownMemory known_memory_;
  // Shared: with memory that users have. Its mutex guards everything up to due_.
  const std::shared_ptr<NcclUse> use_ = std::make_shared<NcclUse>();
  std::unique_ptr<Communicator> communicator_;  // aborted, not null, when broken
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<GpuEvent> before_;
  std::vector<std::shared_ptr<GpuEvent>> idle_;  // shared by the posts of a group while they are in flight
  Native native_;
  std::vector<std::weak_ptr<WindowMemory>> windows_;          // owned by the users who got them
  std::vector<std::shared_ptr<Registration>> registrations_;  // shared with the users who got them
  std::unique_ptr<NcclMultiChannel> multi_;
  std::unordered_map<std::uint64_t, Post> posts_;
  std::vector<std::uint64_t> waiting_;   // posts that NCCL has not got so far, in their order
  std::vector<std::uint64_t> starting_;  // posts that NCCL is taking
  std::uint64_t next_post_ = 1;
  std::uint64_t due_ = 0;  // the last post of which somebody waits for the end without a call
};

}  // namespace col::nccl_backend

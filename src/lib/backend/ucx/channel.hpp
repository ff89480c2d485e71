// The UCX channel: messages between the ranks of one group, over the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/channel_checks.hpp"
#include "backend/ucx/engine.hpp"
#include "backend/ucx/watcher.hpp"
#include "core/fork_guard.hpp"
#include "core/unique_fd.hpp"

namespace col::ucx_backend {

class UcxChannel final : public Channel, public backend::WireOps {
 public:
  // The rank has entered, and its peers, too: see connect().
  UcxChannel(const ConnectRequest& request, std::unique_ptr<Engine> engine);
  // Leaves in good order: what was sent is delivered, and the peers are told. In a process that was forked after the
  // channel was made, it does nothing.
  ~UcxChannel() override;
  // From now on, `watch`, another channel of the group's ranks, says which hosts are lost: UCX finds none whose
  // processes stand still. Throws internal if it does not.
  void be_told_by(std::unique_ptr<Channel> watch);
  // Throws if a peer is lost. For a rank that waits for something else than its messages.
  void require_peers();

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  std::optional<int> test(Ticket ticket) override;
  int wait(Ticket ticket, WaitContext& wait) override;
  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const Request& request, WaitContext& wait) override;
  void abort(const Error& cause) noexcept override;
  void progress() override;
  Probed probe(std::span<const int> peers, std::uint64_t slot, std::size_t bytes) override;
  void on_change(std::function<void()> ring) override;
  bool may_sleep() override;
  bool moves_by_itself() const noexcept override { return false; }

 private:
  void enter(const char* call);
  [[noreturn]] void fail(const Error& error);
  template <class Body>
  auto guarded(Body body);

  Operation& find(Ticket ticket);
  bool step(Operation& operation);
  void look_at_hosts();
  void wait_until_done(Operation& operation, WaitContext& wait);
  void sleep(Duration time);
  int finish(Operation& operation);

  const std::string group_;
  const int rank_;
  const int size_;
  const std::shared_ptr<Store> store_;  // shared with the group layer
  const bool is_crowded_;               // has more ranks than processors
  const core::ForkGuard fork_guard_;
  backend::FirstCause cause_;
  core::UniqueFd wake_;    // becomes readable when the channel breaks
  core::UniqueFd events_;  // UCX's: a copy, so that a thread that sleeps on it does not see it close
  std::mutex mutex_;       // guards the engine: abort() may come from any thread
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Watcher> watcher_;        // null unless another channel sleeps for this one
  std::unique_ptr<Channel> watch_;          // null if the hosts are not watched, or by a launcher
  backend::HostWatchOps* hosts_ = nullptr;  // of watch_
};

}  // namespace col::ucx_backend

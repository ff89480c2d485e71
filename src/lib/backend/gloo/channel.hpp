// The Gloo channel: point-to-point messages and Gloo's own collectives over one mesh.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/gloo/native.hpp"
#include "backend/gloo/transport.hpp"
#include "core/fork_guard.hpp"

namespace col::gloo_backend {

class GlooChannel final : public Channel,
                          public backend::WireOps,
                          public backend::DraftOps,
                          public backend::HostWatchOps {
 public:
  GlooChannel(std::string group, std::shared_ptr<Mesh> mesh);
  // A soft close: what was sent is delivered, and the peers are told that this rank leaves in good order. In a process
  // that was forked after the channel was made, it does nothing, because the connections belong to the parent.
  ~GlooChannel() override;

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  std::optional<int> test(Ticket ticket) override;
  int wait(Ticket ticket, WaitContext& wait) override;
  std::span<const NativeEntry> native_entries() const override;
  Ticket start_native(const Request& request, WaitContext& wait) override;
  void abort(const Error& cause) noexcept override;
  void progress() override;
  Probed probe(std::span<const int> peers, std::uint64_t slot, std::size_t bytes) override;
  void on_change(std::function<void()> ring) override;
  bool may_sleep() override;
  bool moves_by_itself() const noexcept override { return true; }
  bool can_draft() const override { return true; }
  std::unique_ptr<backend::Draft> draft(const ConnectRequest& request, std::span<const int> ranks) override;
  std::exception_ptr lost_host() override { return transport().lost_host(); }

  // For tests, which make Gloo meet cases that the layers above prevent.
  GuardedContext& transport() const { return mesh_->transport(); }

 private:
  struct Posted {
    Buffer buffer;
    bool sends = false;
    // The stream of a receive that waits in line (see post_recv()); otherwise 0, which is no stream's slot.
    std::uint64_t line = 0;

    GuardedBuffer& guarded() const { return static_cast<GuardedBuffer&>(*buffer); }
  };

  void enter(const char* call) const;
  std::vector<int> peers() const;
  Ticket add(Posted posted);
  const Posted& find(Ticket ticket) const;
  void remove(Ticket ticket);
  [[noreturn]] void fail(const std::exception_ptr& failure, WaitContext* wait);
  template <class Body>
  auto guarded(WaitContext* wait, Body body);

  const std::string group_;
  const core::ForkGuard fork_guard_;
  std::shared_ptr<Mesh> mesh_;  // shared with Gloo's option objects
  Native native_;
  std::unordered_map<std::uint64_t, Posted> posted_;      // by ticket; after mesh_: buffers go first
  std::unordered_map<std::uint64_t, std::size_t> lines_;  // receives in line, by stream
  std::uint64_t next_ticket_ = 1;
};

}  // namespace col::gloo_backend

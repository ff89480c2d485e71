// The Gloo channel: point-to-point messages and Gloo's own collectives over one mesh.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include <col/backend.hpp>

#include "backend/gloo/connect.hpp"
#include "backend/gloo/native.hpp"
#include "backend/gloo/tickets.hpp"

namespace col::gloo_backend {

class GlooChannel final : public Channel {
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

  // For tests, which make Gloo meet cases that the layers above prevent.
  GuardedContext& transport() const { return mesh_->transport(); }

 private:
  void enter(const char* call) const;
  void check_peer(const char* call, int peer) const;
  std::vector<int> peers() const;
  [[noreturn]] void fail(const std::exception_ptr& failure, WaitContext* wait);
  template <class Body>
  auto guarded(WaitContext* wait, Body body);

  const std::string group_;
  const pid_t pid_;
  std::shared_ptr<Mesh> mesh_;  // shared with Gloo's option objects
  Native native_;
  Tickets tickets_;  // after mesh_: buffers go first
};

}  // namespace col::gloo_backend

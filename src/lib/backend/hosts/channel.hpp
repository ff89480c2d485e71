// The channel of a group over hosts: shared memory to the ranks of this host, a wire to the others, one wait for both.
//
// Both sides are channels of other backends. Each message is a message of one side. The exception is a receive from any
// peer, which may come over either: it waits in line until one side has a message for it, and so does every later
// receive of its stream, as it must not overtake. Then it becomes a receive from that peer.
//
// A rank with neighbours waits as ranks do that share memory (backend::NearOps::wait_until()). The wire rings its
// doorbell.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/channel_checks.hpp"
#include "backend/hosts/layout.hpp"
#include "backend/hosts/operations.hpp"
#include "core/fork_guard.hpp"

namespace col::hosts_backend {

class HostsChannel final : public Channel, public backend::ImmediateOps, public backend::DraftOps {
 public:
  // `near` has the ranks of layout.near, in their order; it is null if there are no neighbours. `wire` has all ranks.
  // Throws internal if they lack the extensions that this takes.
  HostsChannel(std::string group, Layout layout, std::unique_ptr<Channel> near, std::unique_ptr<Channel> wire);
  ~HostsChannel() override;

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override;
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override;
  std::optional<int> test(Ticket ticket) override;
  int wait(Ticket ticket, WaitContext& wait) override;
  // None: a collective of one side would leave the other one unattended. Plans serve every call.
  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const Request& request, WaitContext& wait) override;
  // To neighbours only; the wire has operations for all messages.
  bool send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept override;
  bool receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept override;
  void abort(const Error& cause) noexcept override;
  bool can_draft() const override;
  std::unique_ptr<backend::Draft> draft(const ConnectRequest& request, std::span<const int> ranks) override;

 private:
  void enter(const char* call) const;
  void check_peer(const char* call, int peer) const;
  Operation& find(Ticket ticket);
  template <class Body>
  auto guarded(Body body);

  Side side_of(int peer) const noexcept;
  bool may_come_from_both(int peer) const noexcept;
  backend::CommonMemoryOps* common_memory() const noexcept {
    return near_ != nullptr ? near_->can().common_memory : nullptr;
  }
  Channel& channel(Side side) const noexcept { return side == Side::near ? *near_ : *wire_; }
  void post(Operation& receive, Side side, int peer);
  void serve_lines();
  bool serve(std::deque<Operation*>& line);
  bool serve_first(Operation& receive);
  bool attends_wire();
  bool is_long_in_coming(const Operation& operation) const;
  std::optional<int> step(Operation& operation);
  int peer_of(const Operation& operation, int peer) const noexcept;
  void tell(const Operation& operation, WaitContext& wait) const;

  const std::string group_;
  const Layout layout_;
  const core::ForkGuard fork_guard_;
  const std::unique_ptr<Channel> near_;
  std::unique_ptr<Channel> wire_;
  backend::NearOps* const near_side_;            // of near_; null without neighbours
  backend::WireOps* const wire_side_;            // of wire_
  backend::ImmediateOps* const near_immediate_;  // of near_; null if it has none
  std::vector<int> neighbours_;                  // by their numbers in near_
  Operations operations_;
  std::map<std::uint64_t, std::deque<Operation*>> lines_;  // by stream; the first of each is from any peer
  unsigned looks_ = 0;                                     // of ranks that wait for neighbours
  bool wire_first_ = false;  // which side is asked first: they take turns, so that neither starves
  backend::FirstCause cause_;
};

}  // namespace col::hosts_backend

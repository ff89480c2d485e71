// What one rank of a group uses to prove its identity to those who connect (net/introduction.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/log.hpp"
#include "net/address.hpp"

namespace col::gloo_backend {

class Credentials {
 public:
  // `token`: the group's token. `secret`: new for this rank and group.
  Credentials(std::uint64_t token, int rank, std::string secret)
      : token_(token), rank_(rank), secret_(std::move(secret)) {}

  int rank() const noexcept { return rank_; }
  // What the others have to know to connect here. They know it with the address.
  const std::string& secret() const noexcept { return secret_; }
  // The name of the connection that `from` makes to `to`.
  std::string connection(int from, int to) const { return fmt::format("{:016x} {}>{}", token_, from, to); }
  // Logs once that the other end of `socket` was dropped. Any thread may call it.
  void say_stranger(int socket) noexcept {
    if (has_said_.exchange(true, std::memory_order_relaxed)) return;
    core::log::warn("gloo: dropped a connection from {} that has not proven to be of this group; said once a group",
                    net::numeric_peer(socket));
  }

 private:
  const std::uint64_t token_;
  const int rank_;
  const std::string secret_;
  std::atomic<bool> has_said_{false};  // relaxed: no other data depends on it
};

}  // namespace col::gloo_backend

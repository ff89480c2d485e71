// A backend for ranks that are threads of one process: the obvious implementation, under one mutex, that others are
// compared with. It can be made unpleasant: late, out of order, with a peer that closes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <col/channel.hpp>

namespace col::test {

// The network between the processes of the ranks, where a test decides that.
class Network {
 public:
  using Time = Deadline::Clock::time_point;
  virtual ~Network() = default;
  // When the process `to` has what the process `from` sends now. Time::max(): never.
  virtual Time arrival(std::int64_t from, std::int64_t to) = 0;
  // True if the process `at` sees that its connection to `peer` has ended, other than by a farewell.
  virtual bool is_lost(std::int64_t at, std::int64_t peer) = 0;
};

struct MemoryOptions {
  std::string name = "memory";
  // Every message arrives up to that much later than it was sent, each by its own random time: so messages of different
  // pairs of ranks or streams overtake one another. Those that must keep their order do.
  Duration longest_delay = Duration::zero();
  std::uint64_t seed = 1;  // of the delays; in describe() and in the text of every error
  // A send ends only when it has been received, as large messages do everywhere. Otherwise as soon as it is posted.
  bool rendezvous = true;
  // That rank's channel closes, as if its process had died, at its post number `at_post` (from 1): there it throws io,
  // and whoever waits for it peer_lost.
  struct Closing {
    int rank = 0;
    int at_post = 1;
  };
  std::optional<Closing> closing = std::nullopt;
  // Returns the network of this moment, in place of longest_delay. A rank then moves on its own messages alone.
  std::function<Network*()> network = nullptr;
};

std::unique_ptr<BackendFactory> make_memory_backend(MemoryOptions options = {});

// The further abilities of a channel of that backend, for channels that have it inside.
class MemoryExtras {
 public:
  virtual ~MemoryExtras() = default;
  // As backend::ImmediateOps::receive_immediate().
  virtual bool take_at_once(int peer, std::uint64_t slot, TensorView data) noexcept = 0;
};

// The channel of a group whose ranks need not wait for one another: they have come, or will. `memory`: made by
// make_memory_backend(). Reads group, rank, size and token of the request.
std::unique_ptr<Channel> connect_at_once(BackendFactory& memory, const ConnectRequest& request);

// Registers it under options.name, once per process and name.
void register_memory_backend(const MemoryOptions& options = {});

}  // namespace col::test

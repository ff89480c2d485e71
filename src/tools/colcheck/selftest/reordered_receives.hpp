// Receives that are posted when something is waited for, and not in the order in which they were asked for: of two with
// one slot and one length, the later one gets the first message.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <col/backend.hpp>

namespace col::colcheck {

class ReorderedReceives {
 public:
  // Remembers the receive. The ticket is of its own kind: translate() knows it, the channel does not.
  Ticket add(int peer, std::uint64_t slot, TensorView data);
  // Posts all that are remembered.
  void post(Channel& channel);
  // The channel's ticket for one of add()'s that has been posted; any other as it is.
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

}  // namespace col::colcheck

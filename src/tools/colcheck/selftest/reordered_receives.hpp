// Receives that are posted only at a wait, and not in the order of the requests: of two with the same slot and length,
// the later one gets the first message.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <col/backend.hpp>

namespace col::colcheck {

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

}  // namespace col::colcheck

// The protocol between the ranks of a group: moves messages through the rings.
//
// A small message goes through the ring as one frame (eager). For a large message, only its announcement does. The
// receiver answers when it has a receive for it, and the sender then streams the bytes in parts:
//
//   sender                          receiver
//     | -- request(slot, bytes, id) -> |   finds a posted receive, or remembers the announcement
//     | <- clear(id, receive's id) --- |
//     | -- data, data, data … -------> |   straight into the receiver's memory
//
// Or the receiver reads it where it is (one_copy.hpp).
//
// So every frame at the head of a ring can be taken at once: into the receiver's memory, or into a private copy if it
// is small and has no receive yet. No message ever blocks another one, and no order of posting and waiting can
// deadlock.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "backend/shm/matching.hpp"
#include "backend/shm/one_copy.hpp"
#include "backend/shm/ring.hpp"
#include "backend/shm/segment/names.hpp"
#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

class Engine {
 public:
  // Requires: both outlive this object.
  Engine(Segment& segment, int rank, const Names& names);

  // `filled` returns how many bytes are there, if not all of them are. It must not throw.
  Operation& send(int peer, std::uint64_t slot, const std::byte* data, std::uint64_t bytes,
                  std::function<std::uint64_t()> filled = {});
  // `peer` may be kAnyPeer.
  Operation& receive(int peer, std::uint64_t slot, std::byte* data, std::uint64_t bytes);
  // A small message that can be written, or is there, at once: no operation is made for it. False, and nothing is done,
  // if it cannot, or if it is not the next one of that peer. Requires: no operation is in flight.
  bool send_immediate(int peer, std::uint64_t slot, const std::byte* data, std::uint64_t bytes) noexcept;
  bool receive_immediate(int peer, std::uint64_t slot, std::byte* data, std::uint64_t bytes) noexcept;
  // The sender of the oldest message of the stream of `slot` that no receive takes; -1 if there is none.
  int sender_of_waiting(std::uint64_t slot) const noexcept;
  // Moves everything that can move without waiting. Throws mismatch, as receive() does, if the next message of a stream
  // does not match the next receive.
  void progress();

  Operation* find(Ticket ticket) noexcept { return operations_.find(ticket.id); }
  void remove(Operation& operation) noexcept { operations_.remove(operation); }

 private:
  struct Peer {
    int rank = -1;
    Producer out;
    Consumer in;
    bool sends = false;          // whether there has been anything in its ring to this rank
    std::size_t claimed = 0;     // bytes of this rank's ring to it that may be written
    OperationQueue to_clear;     // receives whose sender has not been told yet
    OperationQueue to_announce;  // sends that have nothing in the ring yet
    OperationQueue to_stream;    // large sends that were cleared
    OperationQueue to_read;      // large receives that are read from its memory
    OneCopy one_copy;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank < rank_ ? rank : rank - 1)]; }
  void ring(int rank) const noexcept;
  void put(Peer& peer, const FrameHeader& header, const void* payload = nullptr);
  void claim(Peer& peer, std::size_t bytes);
  void look_for_senders();

  void push_out(Peer& peer);
  bool clear_some(Peer& peer);
  bool announce_some(Peer& peer);
  void stream_some(Peer& peer);
  void read_some(Peer& peer);
  Offer offer_of(const Operation& send) const noexcept;
  std::uint64_t bytes_there(Operation& send) noexcept;

  void take_in(Peer& peer);
  void pop(Peer& peer, const FrameHeader& header) noexcept;
  void take(Peer& peer, const FrameHeader& header);
  void take_eager(Peer& peer, const FrameHeader& header);
  void take_request(Peer& peer, const FrameHeader& header);
  void take_clear(Peer& peer, const FrameHeader& header);
  void take_data(Peer& peer, const FrameHeader& header);
  Operation* take_receive(int peer, const FrameHeader& header);
  void take_taken(const Peer& peer, const FrameHeader& header);
  void begin_large(Peer& peer, Operation& receive, std::uint64_t remote, const Offer& offer);
  Operation& expect(const Peer& peer, const FrameHeader& header, bool sending);

  Segment& segment_;
  const int rank_;
  const Names& names_;
  const std::uint64_t proof_;  // of Offer
  const std::size_t ring_bytes_;
  const std::size_t eager_bytes_;                            // messages up to this size are sent whole
  const std::size_t part_bytes_;                             // of a large message
  std::vector<Peer> peers_;                                  // all but this rank, in rank order
  std::uint64_t senders_[RankPlace::kSenderBits / 64] = {};  // as last seen
  std::size_t first_ = 0;  // the peer whose ring is looked at first; it changes, so that each gets its turn
  Operations operations_;
  // by ticket: returns how many bytes of a send are there
  std::map<std::uint64_t, std::function<std::uint64_t()>> filling_;
  MatchTable<Operation> receives_;
  bool has_pool_ = false;
  UnexpectedPool unexpected_pool_;
  MatchTable<Unexpected> unexpected_;
};

}  // namespace col::shm_backend

// One operation of a group that has been started: a collective that runs by a plan, or messages.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "exec/executor.hpp"
#include "group/describe.hpp"
#include "group/dispatch.hpp"
#include "group/operation.hpp"
#include "group/staging.hpp"
#include "group/watch.hpp"

namespace col::group {

// One message of a point-to-point operation.
struct Leg {
  bool sending = false;
  int peer = 0;           // kAnyPeer: from whoever comes first
  bool from_any = false;  // that is meant, and not a user's wrong number
  int tag = 0;
  ConstTensorView view = {};    // what is sent, or where it is received
  void* destination = nullptr;  // the same memory, writable, when it is received
  std::uint64_t number = 0;     // of the message between the two, by tag
  bool numbered = true;         // false: `number` may be wrong
  Channel* channel = nullptr;   // that it goes over; null for one to oneself
  bool staged = false;          // `view` is a copy
  bool in_parts = false;        // of which parts are moved while others are copied
  std::uint64_t moved = 0;      // bytes of those, as last seen
  Ticket ticket = {};
  bool posted = false;  // in the channel; messages to oneself never are
  bool done = false;
};

// Kept by the group while it is in flight, by its Works, and for reuse.
class Pending {
 public:
  // ---- What it is. Set by whoever starts it.
  std::string_view name = "";  // "allreduce"
  std::uint64_t sequence = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t call = 0;  // hash of it, whatever its number
  Duration timeout = {};
  bool collective = true;
  Request request = {};    // collectives: spans point to the copies below
  std::string words = {};  // of a collective that is no request: what it is, equal on all ranks that match
  CallForm form = {};
  std::string asked_algorithm = {};  // Options::algorithm
  bool deterministic = false;
  std::vector<std::size_t> in_counts = {}, out_counts = {};
  std::shared_ptr<const Decision> decision = {};  // shared with the dispatcher's cache
  std::vector<Leg> legs = {};

  Channel* channel = nullptr;  // collectives: that it goes over
  Stream stream = {};          // that copies to and from the GPU run in

  // ---- How it goes.
  // Where buffers are copied: from them, then the call itself, then back.
  enum class Phase : std::uint8_t { fetching, running, returning };
  Phase phase = Phase::running;
  std::unique_ptr<Staging> staging = {};  // null where no buffer is copied
  exec::Executor executor = {};
  std::optional<Ticket> ticket = {};          // of a native collective that has been started, until it has ended
  std::vector<exec::Executed> executed = {};  // when it is traced
  std::unique_ptr<std::byte[]> scaled = {};   // the input of a premul_sum, multiplied; kept for the next
  std::size_t scaled_bytes = 0;
  std::exception_ptr copy_failure = {};  // of a message that is sent while it is copied
  bool ended = true;
  std::optional<Error> error = {};
  int source = -1;                    // of a receive that has ended
  std::unique_ptr<Watch> watch = {};  // once it has been tested, or left to others, and had not ended

  void reset();
  // Whether a call would be this one again: the same buffers, and all else that a decision and the checks go by.
  bool is_repeated_by(const Request& other, const CallWishes& wishes) const;
  // The operations as others compare them, in words.
  std::vector<Operation> describe(int rank, int size) const;
};

// A collective call as others compare it. `words`: what it is, where it is no request.
Operation describe_collective(const Request& request, const CallForm& form, const std::string& words,
                              std::uint64_t sequence, int rank, int size);

// Messages between two ranks that match have equal slots, and no others.
std::uint64_t message_slot(std::uint64_t group_token, const Leg& leg);

}  // namespace col::group

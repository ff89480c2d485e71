// What is behind a Group handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "group/diagnosis.hpp"

namespace col {

namespace group {

// What joining a group gives.
struct GroupParts {
  Surroundings surroundings;  // name, rank, peers, scope, control page
  std::string id;             // tells this group from others of its name, also in its record
  std::string backend = "self";
  std::unique_ptr<Channel> channel;  // null in a world of one
  std::uint64_t token = 0;
  RankRecord* record = nullptr;  // this rank's in the control page; null when there is none
  Duration timeout{};
};

}  // namespace group

class Group::State {
 public:
  explicit State(group::GroupParts parts, std::string error_file);
  ~State();

  const std::string& name() const { return parts_.surroundings.group; }
  int rank() const { return parts_.surroundings.rank; }
  int size() const { return static_cast<int>(parts_.surroundings.peers.size()); }
  const std::string& backend() const { return parts_.backend; }
  const std::string& id() const { return parts_.id; }

  // Checks, runs and, on failure, breaks the group. `request.fingerprint` is filled in here.
  void collective(Request request, const Options& options);
  void send(ConstTensorView data, int destination, const Options& options);
  void recv(TensorView data, int source, const Options& options);
  void sendrecv(ConstTensorView out, int destination, TensorView in, int source, const Options& options);

  // Closes the connections; every later call throws. Waits for no peer.
  void destroy() noexcept;

 private:
  struct Message {  // sent to oneself, not yet received
    DType dtype;
    std::size_t count;
    std::vector<std::byte> bytes;
  };
  struct Leg {  // one direction of a point-to-point call
    bool sending = false;
    int peer = 0;
    ConstTensorView view;  // what is sent, or where it is received (data is then writable)
    void* destination = nullptr;
  };
  class Use;

  void require_usable() const;
  bool is_forked_child() const;
  void exchange(std::vector<Leg> legs, const Options& options);
  void run(std::string_view op, std::uint64_t sequence, std::uint64_t fingerprint,
           std::vector<group::Operation> operations, const Options& options,
           const std::function<void(WaitContext&)>& body);
  [[noreturn]] void fail(const Error& cause);
  void send_to_self(ConstTensorView data, int tag);
  void recv_from_self(TensorView data, int tag);
  void check_name(std::string_view named) const;
  void check_algorithm(const Request& request, std::string_view algorithm) const;

  group::GroupParts parts_;
  const std::string error_file_;  // empty: none
  const std::int64_t pid_;        // of the process that joined: a forked child is no member
  std::atomic<bool> in_use_{false};
  std::atomic<bool> destroyed_{false};
  std::optional<Error> broken_;
  std::uint64_t sequence_ = 0;                                    // collectives so far
  std::map<std::pair<int, int>, std::uint64_t> sent_, received_;  // by (peer, tag): messages so far
  std::map<int, std::deque<Message>> to_self_;                    // by tag
};

}  // namespace col

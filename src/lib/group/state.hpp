// The implementation behind a Group handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "core/fork_guard.hpp"
#include "group/call/call_settings.hpp"
#include "group/call/dispatch.hpp"
#include "group/call/pending.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/gpu/multi_gpu.hpp"
#include "group/staging/staging.hpp"

namespace col {

namespace group {

// The result of joining a group.
struct GroupParts {
  Surroundings surroundings;  // name, rank, peers, scope, control page
  std::string id;             // separates this group from others of its name, also in its record
  std::string backend = "self";
  std::unique_ptr<Channel> channel;  // null in a world of one rank on the CPU
  // A second channel for host memory, beside a channel for GPU memory: for what the first one cannot do. Null in other
  // groups, and in a world of one rank.
  std::string host_backend;
  std::unique_ptr<Channel> host_channel;
  bool may_stage = false;  // some rank had a GPU when the group was made; equal on all ranks
  std::string why_staged;  // why GPU memory goes through the host in this group; empty if it does not
  std::uint64_t token = 0;
  RankRecord* record = nullptr;  // this rank's record in the control page; null if there is none
  Duration timeout{};
  bool is_high_priority_stream = false;
};

// What the context provides to its groups.
struct GroupHost {
  std::string error_file = {};                        // empty: none
  std::shared_ptr<const CallSettings> settings = {};  // shared by the groups of a context; may outlive it with them
  int global_rank = 0;
  // Not called after the group was destroyed. Takes the job's ranks of its members, in order.
  std::function<Group(const GroupSpec&, std::vector<int>)> make_group = {};
  std::function<bool(const std::string&)> has_group = {};
  std::function<std::vector<Group>()> all_groups = {};
  std::function<void(const std::string&)> destroy_group = {};
};

}  // namespace group

// A user's thread holds it through a Use, one at a time. A progress thread takes only the lock, in between.
class Group::State : public std::enable_shared_from_this<Group::State> {
 public:
  using PendingPtr = std::shared_ptr<group::Pending>;  // shared by the group, its Works and its pool

  State(group::GroupParts parts, group::GroupHost host);
  ~State();

  const std::string& name() const { return parts_.surroundings.group; }
  int rank() const { return parts_.surroundings.rank; }
  int size() const { return static_cast<int>(parts_.surroundings.peers.size()); }
  const std::string& backend() const { return parts_.backend; }
  const std::string& id() const { return parts_.id; }
  Device device() const { return own_.device; }
  group::Shape shape() const { return {name(), rank(), size(), own_.device.type, world_rank(rank())}; }
  int world_rank(int rank) const { return parts_.surroundings.peers[static_cast<std::size_t>(rank)].global_rank; }
  int rank_of(int world_rank) const { return parts_.surroundings.rank_of(world_rank); }
  Duration timeout() const { return parts_.timeout; }

  // ---- Collectives (state.cpp). They check, run and, on failure, break the group.
  void run(Request request, const Options& options);
  // The same for a few words in host memory, for ranks that all have them there. In a group of GPUs, it uses no GPU.
  void run_on_host(Request request, const Options& options);
  Work start(Request request, const Options& options);
  std::string explain(Collective collective, std::size_t bytes, DType dtype, const Options& options) const;
  std::vector<std::string> algorithm_names(Collective collective) const { return own_.dispatcher.names(collective); }

  // ---- Messages (messages.cpp)
  // Blocks until all have been exchanged. Returns the rank that sent the last received message.
  int exchange(std::string_view name, std::vector<group::Leg> legs, const Options& options);
  Work start_messages(std::string_view name, std::vector<group::Leg> legs, const Options& options);

  // ---- Several GPUs for each rank (multi_gpu.cpp). Both block.
  void run_multi_gpu(const group::MultiGpuCall& call, const Options& options);
  void exchange_multi_gpu(const group::MultiGpuMessage& message, const Options& options);

  // ---- Memory (memory.cpp)
  std::shared_ptr<void> allocate(std::size_t bytes, const Options& options);
  // Throws invalid_argument if a call or an operation may use the memory: one of this group, or, while it lives, of
  // another group in its context.
  void require_unused(const void* memory, std::size_t bytes);

  // ---- Works (progress.cpp)
  // Returns false if `pending` has not ended after `budget`. A budget of zero means "its timeout", after which it
  // fails.
  bool wait(group::Pending& pending, Duration budget);
  bool test(group::Pending& pending);
  // For threads that are not in a call of this group. Returns whether anything is still in flight. Does not block.
  bool progress_in_background();
  // Whether this thread is inside that function, for any group.
  static bool is_moving_one_on() noexcept;

  // ---- Groups made from this one (subgroups.cpp)
  Group subgroup(std::span<const int> ranks, std::string name);
  Group shrink(std::span<const int> excluded, std::string name);  // shrink.cpp
  std::string child_name(std::string_view kind);
  bool has_group(const std::string& group) const { return host_.has_group && host_.has_group(group); }

  void record_trace(bool on);
  std::vector<TraceEntry> trace();

  // Breaks the group, because the others wait for something that this rank cannot do.
  [[noreturn]] void give_up(const Error& cause);
  // For a receive that has ended; otherwise -1.
  int source_of(const group::Pending& pending);
  std::optional<Error> error_of(const group::Pending& pending);

  // Ends what is in flight, in a few seconds at most, and closes the connections. Every later call throws. Returns an
  // error that no other call will report: the calls of the ranks differ. `why`: the error of another group that is the
  // reason.
  std::optional<Error> destroy(const std::optional<Error>& why = std::nullopt) noexcept;
  // The same, and removes the group from its context's registry. Idempotent.
  void leave();
  // The error that broke it. Also nothing while a call of another thread uses the group.
  std::optional<Error> broken_by();
  // Lets others compare these calls with theirs, unless a thread uses the group.
  void post_calls();

 private:
  struct ToSelf {  // a message to oneself that is not received yet
    DType dtype;
    std::size_t count;
    std::vector<std::byte> bytes;
  };
  class Use;

  // Connections that move one kind of memory, and the dispatcher for calls over them.
  struct Lane {
    Lane(const group::GroupParts& parts, Channel* over, const std::string& backend,
         const group::CallSettings& settings);

    Channel* const channel;          // of parts_; null in a world of one rank
    DeviceExtension* const gpu;      // of the channel; null if it moves host memory
    PartsExtension* const in_parts;  // of the channel; null if it has none
    const Device device;             // the memory that it moves
    group::Dispatcher dispatcher;
  };

  void require_usable() const;
  bool is_inside() const noexcept;
  void require_not_inside() const;
  [[noreturn]] void throw_in_use() const;
  Error own_error(ErrorCode code, std::string_view message) const { return error_about(rank(), code, message); }
  Error error_about(int culprit, ErrorCode code, std::string_view message) const;
  std::unique_lock<std::mutex> lock_to_look();
  void leave_to_others(bool leaves) noexcept;
  bool is_forked_child() const;
  void check_name(std::string_view named) const;
  void check_named(std::string_view named) const;
  Duration timeout_of(const Options& options) const;
  Work work_of(PendingPtr pending);

  // shrink.cpp
  std::vector<int> staying(std::span<const int> excluded) const;
  std::string agree_to_shrink(std::span<const int> excluded, const std::vector<int>& ranks, std::string child);

  // memory.cpp
  void require_unused_here(const void* memory, std::size_t bytes, bool own);

  // staged.cpp
  std::unique_ptr<group::Staging> stage(Request& request, Device wanted);
  std::unique_ptr<group::Staging> stage(std::vector<group::Leg>& legs, Stream stream);
  void fetch_messages(group::Pending& pending);
  void fetch(group::Pending& pending, WaitContext& wait);
  void give_back(group::Pending& pending, WaitContext& wait);
  void run_alone(const Request& request, const Options& options, group::Staging* staging);
  std::unique_ptr<group::Staging> keep_if_used(std::unique_ptr<group::Staging> staging, Stream stream);

  // pieces.cpp
  std::size_t elements_of_piece(const Lane& lane, const Request& request, const Options& options) const;
  void run_in_pieces(Lane& lane, const Request& request, const Options& options, std::size_t elements);
  PendingPtr begin_piece(Lane& lane, Request&& request, const Options& options, group::Piece piece);
  void fetch_ahead(group::Pending& pending);
  void run_piece(const PendingPtr& piece);

  // state.cpp
  const Lane& lane_for(const Request& request, const Options& options, bool asynchronous) const;
  Lane& lane_for(const Request& request, const Options& options, bool asynchronous);
  void run_in_use(Request request, const Options& options);
  void run_over(Lane* lane, Request request, const Options& options);
  // Null for a channel that moves host memory.
  DeviceExtension* gpu_of(const Channel* channel) const { return channel == own_.channel ? own_.gpu : nullptr; }
  Lane* host_lane() { return hosted_ ? &*hosted_ : &own_; }
  PendingPtr begin(Lane* over, Request&& request, const Options& options, bool asynchronous, group::Piece piece = {});
  void announce(group::Pending& pending);
  PendingPtr& slot_of(const Request& request);
  void keep(const PendingPtr& pending);
  void launch(const PendingPtr& pending);
  void execute(group::Pending& pending);
  void start_native(const PendingPtr& pending);
  void run_native(const PendingPtr& call);
  PendingPtr acquire();
  [[noreturn]] void fail(const Error& cause);
  // Called in a catch block: breaks the group with the present exception.
  [[noreturn]] void fail_with_current(group::Diagnosis& diagnosis, const group::Pending& pending);
  void break_with(const Error& cause) noexcept;
  void abort_channels(const Error& cause) noexcept;
  void close_channels() noexcept;

  // progress.cpp
  void progress_all();
  void progress_hosted();
  bool progress(group::Pending& pending);
  bool move_on(group::Pending& pending);
  void finish(group::Pending& pending);
  void await(group::Pending& pending);
  void await_until(group::Pending& pending, WaitContext& wait);
  static void pause(int turn);
  static void await_copies(group::Staging& staging, WaitContext& wait);
  void block(group::Pending& pending, WaitContext& wait, int turn);
  void await_collectives();
  std::optional<Error> drain() noexcept;
  group::Diagnosis diagnose(const group::Pending& pending);
  group::Diagnosis::Describe describer_of(const group::Pending& pending) const;
  group::Watch& watch_of(group::Pending& pending);
  void look_why(group::Pending& pending);
  bool outlived(group::Pending& pending);

  // multi_gpu.cpp
  MultiChannel& multi_channel(std::string_view call) const;
  void check_multi_gpu(std::string_view call, const Options& options) const;
  void check_numerics(const group::MultiGpuCall& call, const Options& options) const;
  group::Operation describe_multi_gpu(const group::MultiGpuMessage& message, int own_device);
  void compare_first(const group::Operation& operation, WaitContext& wait);

  // messages.cpp
  PendingPtr begin_messages(std::string_view name, std::vector<group::Leg> legs, const Options& options, bool blocking);
  void require_sent_to_self(const std::vector<group::Leg>& legs) const;
  void check_leg(const group::Leg& leg) const;
  Channel* channel_for(const group::Leg& leg) const;
  bool holds_back_messages() const;
  void check_apart(const std::vector<group::Leg>& legs) const;
  void post(group::Leg& leg, group::Pending& pending);
  void post_in_parts(group::Leg& leg, std::uint64_t slot, group::Pending& pending);
  void follow_parts(group::Leg& leg, group::Pending& pending);
  bool progress(group::Leg& leg, group::Pending& pending);
  void complete(group::Leg& leg, group::Pending& pending, int peer);
  void send_to_self(group::Leg& leg);
  bool take_from_self(const group::Leg& leg);

  group::GroupParts parts_;
  const group::GroupHost host_;
  const core::ForkGuard fork_guard_;  // a child that was forked after the process joined is not a member
  Lane own_;
  std::optional<Lane> hosted_;  // in a group for GPU memory: over the host
  const exec::Fault* const fault_;

  std::atomic<bool> in_use_{false};
  std::atomic<bool> destroyed_{false};
  std::mutex mutex_;  // guards all members below, and the channel
  std::optional<Error> broken_;
  std::uint64_t sequence_ = 0;                                 // collectives so far
  std::uint64_t calls_ = 0;                                    // hash of them
  std::uint64_t children_ = 0;                                 // groups made from this one
  std::uint64_t shrinks_ = 0;                                  // calls of shrink()
  std::map<std::pair<int, int>, std::uint64_t> between_gpus_;  // by (source, destination): messages so far
  std::map<int, int> open_any_;                                // by tag: receives from any rank that are in flight
  std::map<int, std::deque<ToSelf>> to_self_;                  // by tag
  group::StagingPool staging_;                                 // used by the operations below, to their end
  std::vector<PendingPtr> active_;                             // in flight, in the order of starting
  std::vector<PendingPtr> pool_;                               // for reuse
  std::vector<PendingPtr> repeated_;                           // native calls that may come again, by slot_of()
  int in_parts_ = 0;                                           // messages in flight that move in parts
  bool is_left_to_others_ = false;                             // in InFlight
  int idle_turns_ = 0;                                         // polls since a part of one last moved
  bool told_of_memory_ = false;
  bool told_of_staging_ = false;
  bool tracing_ = false;
  std::vector<TraceEntry> trace_;
  std::set<std::string, std::less<>> names_;  // of the algorithms in the trace
};

struct Work::Handle {
  std::shared_ptr<Group::State> state;  // shared: a Work may outlive its group's handles
  Group::State::PendingPtr pending;
};

}  // namespace col

// The control page, which the processes of one job on one node share, and deadlines and waits.
//
// Every wait below the group layer takes a WaitContext and calls check() at least once in every slice(). So every wait
// ends at its deadline, when the job is aborted, or when a peer is lost. col has no infinite wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/types.hpp>

namespace col {

namespace core {
struct AnnouncedCalls;
class CallRing;
struct RecorderLayout;
struct RecordLayout;
}  // namespace core

// A point in time on the monotonic clock. Always finite.
class COL_EXPORT Deadline {
 public:
  // The monotonic clock, with the times of std::chrono::steady_clock. (Tests of the library put a simulated one in its
  // place.)
  struct COL_EXPORT Clock {
    using time_point = std::chrono::steady_clock::time_point;
    using duration = time_point::duration;
    using rep = duration::rep;
    using period = duration::period;
    static constexpr bool is_steady = true;

    static time_point now() noexcept;
  };

  // `budget` from now, less the part of it that was `spent` before. budget() still returns the whole. It is capped at
  // kMaxBudget, so that arithmetic with it cannot overflow. A negative one counts as zero.
  static Deadline after(Duration budget, Duration spent = Duration::zero()) noexcept;
  // A deadline whose time has not begun yet. It counts as expired until it is replaced.
  static Deadline of(Duration budget) noexcept { return {Clock::time_point(), budget}; }
  static constexpr Duration kMaxBudget = std::chrono::hours(24 * 365);

  bool expired() const noexcept { return Clock::now() >= at_; }
  Duration remaining() const noexcept;  // never negative
  Duration budget() const noexcept { return budget_; }
  Clock::time_point at() const noexcept { return at_; }

 private:
  Deadline(Clock::time_point at, Duration budget) noexcept : at_(at), budget_(budget) {}
  Clock::time_point at_;
  Duration budget_;
};

// The reason why a job has ended early.
struct AbortCause {
  ErrorCode code = ErrorCode::aborted;
  int rank = -1;        // the global rank that is the cause; -1 if no rank is
  std::string message;  // cut at ControlPage::kMaxMessage bytes
};

// The data that a call moves, and its other rank.
struct CallDetails {
  DType dtype = DType::bytes;
  std::uint64_t count = 0;    // elements of the buffer that every rank has
  std::int32_t partner = -1;  // global rank of a message's other side or a collective's root; -1: none, or any
  std::int32_t tag = -1;      // of a message
  // If the collective reduces: 1 + ReduceOp, or RankRecord::kOtherReduction. Otherwise 0.
  std::uint8_t reduction = 0;
  std::uint8_t algorithm = 0;  // RankRecord::algorithm(); 0: not known
  std::uint16_t label = 0;     // RankRecord::label(); 0: none
};

// The names that belong to the numbers in CallDetails. Each may be empty.
struct CallNames {
  std::string reduction;  // "sum"; "other": a user's operator, or premul_sum
  std::string algorithm;  // cut at 31 bytes
  std::string label;      // the text of Group::annotate(); cut at 47 bytes
};

// How far a call had come when its wait began.
struct CallProgress {
  std::int32_t round = -1;  // the round of its plan, from 0; -1: it has no plan, or the round is not known
  std::int32_t rounds = -1;
  std::uint64_t bytes = 0;  // sent and received
};

// The present activity of one rank. Other processes may read it at any time: the launcher for its report, a waiting
// rank to find the culprit.
struct RankActivity {
  enum class State : std::uint32_t { absent, joined, running, waiting, finished };
  State state = State::absent;
  int rank = -1;                // global rank
  std::int64_t pid = 0;         // 0 while absent
  std::uint64_t pid_start = 0;  // start time of that process in clock ticks; tells a reused pid apart
  std::string group;            // cut at 47 bytes
  std::uint64_t sequence = 0;   // number of the operation in its group
  std::string op;               // "allreduce", "recv"; cut at 15 bytes
  // As Request::fingerprint: covers the call and all earlier calls of the group. 0 for messages, and for calls that
  // have not waited.
  std::uint64_t fingerprint = 0;
  std::int32_t step = -1;  // step of a plan; -1 outside of a plan
  std::int32_t peer = -1;  // the rank that this one waits for; -1 if it is not a single one
  CallProgress progress = {};
  // The time at which the rank entered `state`, or last tested a call in flight (touch()). CLOCK_MONOTONIC, exact to a
  // tick of the kernel (at most 10 ms).
  std::uint64_t since_ns = 0;
  // The global rank that this one waits for, or that its last call waited for if that call failed. -1 if this is not
  // known, or if it waits for nobody.
  std::int32_t held_up_by = -1;
  bool stopped = false;  // by a signal or a debugger; only ControlPage::activities() sets it
  bool gone = false;     // its process has ended; only ControlPage::activities() sets it
  CallDetails details = {};
  CallNames names = {};    // as details
  std::string place = {};  // the place in the program of a call that waits for long: "train.py:88"; mostly empty
};

// An operation in a rank's flight recorder, which keeps its last RankRecord::kRecordedCalls operations.
struct RecordedCall {
  Collective op = {};
  bool ended = true;           // false: this entry is the start of an operation that the rank may wait for later
  std::string group;           // cut at 47 bytes; empty: the rank is in more groups than the recorder can name
  std::uint64_t sequence = 0;  // a message has that of the last collective before it
  std::uint64_t at_ns = 0;     // CLOCK_MONOTONIC, to a tick of the kernel
  CallDetails details = {};
  CallNames names = {};
};

// A group that a rank is in, and how far it has come there.
struct RecordedGroup {
  std::string name;         // cut at 47 bytes
  std::uint64_t token = 0;  // the same on all members, and no other group's
  std::uint64_t last = 0;   // number of its last collective there, ended or started; 0: none
};

// The content of one rank's flight recorder.
struct RankHistory {
  std::vector<RecordedGroup> groups;
  std::vector<RecordedCall> calls;  // oldest first
};

// A RecordedCall, for readers that count calls and compare times.
struct TimedCall {
  std::uint64_t token = 0;  // as in RecordedGroup; 0: the rank is in more groups than the recorder can name
  std::uint64_t sequence = 0;
  Collective op = {};
  bool ended = true;          // as in RecordedCall
  std::uint64_t took_ns = 0;  // from its first wait to its end; a large call's from its begin; 0: small, and no wait
  CallDetails details = {};
};

// The operations of one rank since an earlier look.
struct RankTimes {
  std::uint64_t noted = 0;       // operations ever: pass it to the next times_since()
  std::uint64_t waited_ns = 0;   // the sum of TimedCall::took_ns, ever
  std::vector<TimedCall> calls;  // oldest first; calls that were overwritten meanwhile are missing
};

// The process that the launcher has started for a rank, whether or not it ever joins.
struct StartedProcess {
  int rank = -1;  // global rank
  std::int64_t pid = 0;
  bool stopped = false;            // by a signal or a debugger
  std::optional<int> wait_status;  // as from waitpid(); set once the launcher has seen the process end
};

// The part of the control page that one rank writes. One process writes, any number of processes read, without locks.
// Two threads of the writing process may write: readers then see the later call. A writer that is killed at any
// instruction blocks nobody.
class COL_EXPORT RankRecord {
 public:
  RankRecord(const RankRecord&) = delete;
  RankRecord& operator=(const RankRecord&) = delete;

  // This process takes the record for global rank `rank`. Throws already_initialized if another live process holds it
  // and has not called finish(): the rank was started twice. The same process may join again.
  void join(int rank);
  // A call begins that may wait: its words are in the record until end(). waiting(): it waits, as WaitContext says.
  void begin(std::string_view group, std::uint64_t sequence, std::string_view op, std::uint64_t fingerprint,
             const CallDetails& details = {}) noexcept;
  void waiting(std::int32_t step, std::int32_t peer, const CallProgress& progress = {}) noexcept;
  // The place in the program of the call that is under way: "train.py:88". Of a longer text, the last 55 bytes are
  // kept.
  void place(std::string_view where) noexcept;
  void held_up_by(int global_rank) noexcept;  // this rank waits for that one, as far as it can tell; -1: for nobody
  void resume() noexcept;                     // the wait is over, the operation may go on: waiting -> running
  // as resume(), but the operation failed because of that rank; -1: the one that held_up_by() named
  void fail(int global_rank) noexcept;
  void touch() noexcept;  // the rank tested a call in flight: since_ns is now
  // The operation is over: state running -> joined. With a group: all operations in flight in that group are over; the
  // state stays if the record already shows a call of another group.
  void end(std::string_view group = {}) noexcept;
  void finish() noexcept;  // the rank left in good order, with no unfinished operation
  // The epoch of the job's group, "default", that this process is in, from init(), join() or renew() on. It stays after
  // finish(). No epoch before, and after a renew() that has left the process out.
  void enter_epoch(std::uint64_t epoch) noexcept;
  void leave_epochs() noexcept;
  std::optional<std::uint64_t> epoch() const noexcept;

  // ---- The flight recorder: the last kRecordedCalls operations, which the group layer writes. A call that does not
  // wait is only here; begin() writes one that waits into the record. read() looks at both.

  static constexpr std::size_t kRecordedCalls = 1024;
  static constexpr std::uint8_t kOtherReduction = 255;
  // The numbers by which CallDetails names an algorithm and a label. 0 for an empty text, for algorithms beyond the
  // 63rd, and for a label whose `number` is 0. Readers know the last 128 labels.
  std::uint8_t algorithm(std::string_view name) noexcept;
  std::uint16_t label(std::string_view text, std::uint16_t number) noexcept;
  // The rank is in this group from now on. Returns the group's number in entries; 0: there are too many groups, and
  // entries of this one have no name. Requires: `token` is not 0.
  int enter_group(std::string_view name, std::uint64_t token) noexcept;
  void leave_group(int group) noexcept;
  RankHistory history(std::size_t most_calls = kRecordedCalls) const;
  // The operations after the first `noted` ones. Without calls, it costs a few loads.
  RankTimes times_since(std::uint64_t noted, bool with_calls = true) const;
  // All groups that the rank was ever in, except those whose place another group has taken.
  std::vector<RecordedGroup> groups_ever() const;

  // For the launcher: the process that it has started for a global rank, and how that process ended. A later started()
  // names a process that takes the place of one that has ended.
  void started(int rank, std::int64_t pid) noexcept;
  void ended(int wait_status) noexcept;
  // Nothing if no launcher has called started(). Reads a file of /proc.
  std::optional<StartedProcess> process() const;
  // Parts of process() that need no file of /proc. started_as(): the rank; -1 if no launcher has called started().
  // has_ended(): true if wait_status is known. restarts(): how often started() was called after the first time.
  int started_as() const noexcept;
  bool has_ended() const noexcept;
  int restarts() const noexcept;

  // A consistent snapshot. Retries for at most 20 ms while the writer writes. After that, the writer was stopped or
  // killed in the middle: then `state`, `rank` and the process are still right, and the rest is empty.
  RankActivity read() const;
  // The global rank that read() would name; -1: none has joined. A load of one word, which never waits for a writer.
  int rank() const noexcept;
  std::int64_t holder() const noexcept;  // the pid that read() would name, at the same cost; 0: none
  // True if a process joined, did not call finish(), and is gone: its pid is dead, or belongs to another process now.
  // If another process has seen it alive a moment ago, lost() does not look itself.
  bool lost() const;
  // Call it after you have seen that process end: lost() then looks again, in all processes.
  void doubt() noexcept;

 private:
  friend class ControlPage;
  friend struct core::AnnouncedCalls;
  friend class core::CallRing;
  RankRecord() = default;
  void set_state(RankActivity::State state) noexcept;
  void store_details(const CallDetails& details) noexcept;
  CallNames names_of(const CallDetails& details) const;
  void clear_history() noexcept;
  std::uint64_t later_entry() const noexcept;
  bool read_ring(RankActivity& activity) const;
  void take_over_ring() noexcept;
  core::RecordLayout* layout_ = nullptr;      // in the page
  core::RecorderLayout* recorder_ = nullptr;  // in the page
};

// The control page: one mapped file for each node and job. It holds the job's abort cause and a record for each local
// rank. Its size is fixed, and it has no locks.
//
// Thread safe, and safe between processes. A process that is killed at any instruction leaves a readable page.
class COL_EXPORT ControlPage {
 public:
  static constexpr std::size_t kMaxMessage = 480;

  // Creates the file for `local_ranks` ranks. It has mode 0600; it is written completely and then renamed into place.
  // Throws io or resource.
  static std::shared_ptr<ControlPage> create(const std::string& path, int local_ranks, std::string_view job_id);
  // Maps an existing page. Throws io if it cannot be opened. Throws mismatch if it is not a control page of this
  // version, or belongs to another job.
  static std::shared_ptr<ControlPage> open(const std::string& path, std::string_view job_id);
  // As open(), for a look from outside: the page may belong to any job. Throws io also if it belongs to another user.
  static std::shared_ptr<ControlPage> look_at(const std::string& path);
  // The process that comes first creates the page; the others open it.
  static std::shared_ptr<ControlPage> open_or_create(const std::string& path, int local_ranks, std::string_view job_id);
  // A page in private memory, for ranks that are threads of one process.
  static std::shared_ptr<ControlPage> in_memory(int local_ranks);

  ~ControlPage();
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;

  int local_ranks() const noexcept;
  // Throws invalid_argument unless 0 <= local_rank < local_ranks().
  RankRecord& record(int local_rank) const;
  // The time at which the page was made, and the process that made it: the launcher, or the first rank.
  std::chrono::system_clock::time_point made_at() const noexcept;
  std::int64_t maker() const noexcept;
  bool maker_lives() const;
  // The activities of all ranks that have joined. With `look_for_stopped`, also sets `stopped` and `gone`, which reads
  // a file of /proc for each rank.
  std::vector<RankActivity> activities(bool look_for_stopped = true) const;

  // Records why the job ends. The first cause wins and never changes. Returns whether this cause was the first.
  bool abort(const AbortCause& cause) noexcept;
  bool aborted() const noexcept;  // costs one load
  // Counts events that may end a wait. ring() changes it, and wakes all that sleep until it changes.
  const std::atomic<std::uint32_t>& news() const noexcept;
  // Call it after writing that a rank's process has ended: all ranks of this node then look at once. abort() does so
  // itself.
  void ring() noexcept;

  // The cause; nothing as long as aborted() is false. Blocks for at most 100 ms, and only if the process that aborts is
  // writing at this moment. If that process was killed while it wrote, the cause says so.
  std::optional<AbortCause> abort_cause() const;

 private:
  struct Impl;
  explicit ControlPage(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Follows the chain from global rank `first`: from each rank that waits to the rank that it waits for. Returns the rank
// at the end, which does not wait, or is stopped. Null if the chain is a circle, or leads to a rank that does not
// exist.
COL_EXPORT const RankActivity* last_in_chain(const std::vector<RankActivity>& activities, int first);

// An observer, which a wait asks in addition to its deadline. The group layer implements it, because it can tell which
// ranks are missing.
class COL_EXPORT WaitObserver {
 public:
  virtual ~WaitObserver();
  // check() calls it once a wait has lasted 100 ms, and then at growing intervals up to 1 s. It throws to end the wait
  // (mismatch, peer_lost, aborted), or returns to let it go on: true if it wants to be called again after 100 ms.
  virtual bool on_slow(Duration waited) = 0;
  // check() calls it once for each value of ControlPage::news(), which is 0 until something has happened. It throws to
  // end the wait, as on_slow() does.
  virtual void on_news(std::uint32_t /*news*/) {}
  // check() calls it when the deadline has passed. It throws the timeout, with the names of the missing ranks.
  virtual void on_timeout(Duration budget) = 0;
};

// A program's own reason to end a wait, for example Ctrl-C in an interpreter. It ends the wait by throwing anything.
using Interrupt = std::function<void()>;

// The state of one wait; every blocking function takes one. Not thread safe: each waiting call has its own.
//   WaitContext wait(Deadline::after(5s), page, record);
//   while (!ready()) { block_at_most(wait.slice()); wait.check(); }
class COL_EXPORT WaitContext {
 public:
  explicit WaitContext(Deadline deadline, ControlPage* page = nullptr, RankRecord* record = nullptr,
                       WaitObserver* observer = nullptr, const Interrupt* interrupt = nullptr) noexcept;
  // The same, with a deadline `budget` after the first check(), slice() or deadline(). For calls that mostly end
  // without any of these: they then never read the clock.
  explicit WaitContext(Duration budget, ControlPage* page = nullptr, RankRecord* record = nullptr,
                       WaitObserver* observer = nullptr, const Interrupt* interrupt = nullptr) noexcept;

  ~WaitContext() { resume(); }
  WaitContext(const WaitContext&) = delete;
  WaitContext& operator=(const WaitContext&) = delete;

  const Deadline& deadline() noexcept {
    start();
    return deadline_;
  }
  ControlPage* page() const noexcept { return page_; }
  RankRecord* record() const noexcept { return record_; }

  // Says in words what this wait is for, for the message of a timeout: "key 'x'", "data from rank 3".
  void describe(std::string what) {
    what_ = std::move(what);
    ask_what_ = nullptr;
  }
  // The same, but the words are made only when the wait has failed. For waits that must not allocate.
  void describe(std::function<std::string()> what) { ask_what_ = std::move(what); }

  // Writes into the record that this rank waits, until this context ends: in which step of a plan, and for which rank
  // of the group (-1: none, or several). check() does so for every wait that is slow (see WaitObserver::on_slow()).
  void waiting(std::int32_t step, std::int32_t peer, const CallProgress& progress = {}) noexcept {
    start();
    if (record_ == nullptr) return;
    told_ = true;
    record_->waiting(step, peer, progress);
  }

  // The wait is over, but the operation that it is part of may not be.
  void resume() noexcept {
    if (std::exchange(told_, false)) record_->resume();
  }

  // Sets a function that the first check(), slice() or deadline() calls: work that a call which ends without any of
  // these can save. It must not throw. A context that was made with a Deadline has begun, and does not call it.
  void before_waiting(std::function<void()> first) { before_waiting_ = std::move(first); }
  // Sets work that this rank does for others while it waits. Each check() calls it, and throws what it throws.
  void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }

  // Throws if the wait must end: the job's abort cause as an Error of that code, what the observer or the interrupt
  // throws, or timeout. It calls the interrupt every 50 ms. Cheap if nothing is wrong: a few loads and one clock read.
  void check();

  // From now on, only events end a sleep: a slice() is as long as the deadline allows. It is for waits of hours that
  // something from outside ends. Meanwhile, nothing looks at the page, and the interrupt is called only after a signal
  // has ended a sleep.
  void sleep_until_told() noexcept { sleeps_ = true; }
  bool sleeps_until_told() const noexcept { return sleeps_; }

  // Returns the exception that the interrupt of this thread's last wait has thrown, or null; the next call returns
  // null. For code that catches the error of a wait, which may have replaced that exception.
  static std::exception_ptr take_interruption() noexcept;

  // An interrupt calls it while it runs: it says where in the program the waiting call was made ("train.py:88"), for
  // the record.
  static void say_place(std::string_view place);

  // Only the observer's part of check(), for a caller that does not wait but tests again and again.
  void look();

  // Call it when there is a reason to think that the wait cannot succeed. The next check() then asks the observer.
  void hurry() noexcept;

  // How long a blocking primitive may sleep before the next check(): at most 50 ms, and never beyond the deadline.
  Duration slice() noexcept;
  // A second reason to end that sleep, for a primitive that can wait for two words: ControlPage::news() differs from
  // the value that the last check() has seen. Null without a page.
  struct News {
    const std::atomic<std::uint32_t>* word = nullptr;
    std::uint32_t seen = 0;
  };
  News news() const noexcept { return {page_ != nullptr ? &page_->news() : nullptr, news_}; }

 private:
  void start() noexcept;
  void begin() noexcept;
  void look(Deadline::Clock::time_point now);
  void ask_interrupt(Deadline::Clock::time_point now);
  void hear_news();

  bool is_started_ = true;
  bool told_ = false;       // the record says that this rank waits
  bool sleeps_ = false;     // until told
  std::uint32_t news_ = 0;  // ControlPage::news() at the last check()
  Deadline deadline_;
  ControlPage* page_;
  RankRecord* record_;
  WaitObserver* observer_;
  const Interrupt* interrupt_;  // null, or a function
  Deadline::Clock::time_point started_;
  Deadline::Clock::time_point next_interrupt_;
  Deadline::Clock::time_point next_slow_;
  Duration slow_interval_;
  std::string what_;
  std::function<std::string()> ask_what_;
  std::function<void()> meanwhile_;
  std::function<void()> before_waiting_;
};

}  // namespace col

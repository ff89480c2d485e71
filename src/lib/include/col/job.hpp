// What the processes of one job on one node share, and how they wait.
//
// Every wait below the group layer takes a WaitContext and calls check() at least every slice(): so it ends at its
// deadline, when the job is aborted, and when a peer is found to be lost. There is no infinite wait in col.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
struct RecordLayout;
}

// A point in time on the monotonic clock. A value; always finite.
class COL_EXPORT Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `budget` from now; capped at kMaxBudget so that arithmetic on it cannot overflow. Negative counts as zero.
  static Deadline after(Duration budget) noexcept;
  // Of a time that has not begun: expired, until it is replaced.
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

// Why a job ended early.
struct AbortCause {
  ErrorCode code = ErrorCode::aborted;
  int rank = -1;        // the global rank that is the cause, -1 when none is
  std::string message;  // cut at ControlPage::kMaxMessage bytes
};

// What one rank is doing, as others may read it at any time (the launcher's report, a waiter that looks for the
// culprit).
struct RankActivity {
  enum class State : std::uint32_t { absent, joined, running, waiting, finished };
  State state = State::absent;
  int rank = -1;                  // global rank
  std::int64_t pid = 0;           // 0 while absent
  std::uint64_t pid_start = 0;    // start time of that process in clock ticks: tells a reused pid apart
  std::string group;              // cut at 47 bytes
  std::uint64_t sequence = 0;     // number of the operation in its group
  std::string op;                 // "allreduce", "recv"; cut at 15 bytes
  std::uint64_t fingerprint = 0;  // as Request::fingerprint: of the call, and of all calls of the group before
  std::int32_t step = -1;         // step of a plan, -1 when not in one
  std::int32_t peer = -1;         // rank waited for, -1 when not a single one
  // When `state` was entered, or a call in flight was last looked after; CLOCK_MONOTONIC, to a tick of the kernel (at
  // most 10 ms).
  std::uint64_t since_ns = 0;
  // The global rank that this one waits for, or that its last call, which failed, has waited for; -1 when it cannot be
  // told, or nobody.
  std::int32_t held_up_by = -1;
  bool stopped = false;  // by a signal or a debugger; of ControlPage::activities() alone
};

// How the process that the launcher has started for a rank fares, whether or not it ever joins.
struct StartedProcess {
  int rank = -1;  // global rank
  std::int64_t pid = 0;
  bool stopped = false;            // by a signal or a debugger
  std::optional<int> wait_status;  // once the launcher has seen it end: as of waitpid()
};

// The part of the control page that one rank writes (one process, any number of readers, lock free). Two threads of
// that process may write: readers then see the later call. A writer may be killed at any instruction: it blocks nobody.
class COL_EXPORT RankRecord {
 public:
  RankRecord(const RankRecord&) = delete;
  RankRecord& operator=(const RankRecord&) = delete;

  // This process takes the record for global rank `rank`. Throws already_initialized when a live process other than
  // this one holds it and has not finish()ed (a rank that was started twice). The same process may join again.
  void join(int rank);
  void begin(std::string_view group, std::uint64_t sequence, std::string_view op, std::uint64_t fingerprint) noexcept;
  void waiting(std::int32_t step, std::int32_t peer) noexcept;
  void held_up_by(int global_rank) noexcept;  // whom the wait is for, as far as this rank can tell; -1: nobody
  void resume() noexcept;                     // the wait is over, the operation may not be: state waiting -> running
  void fail(int global_rank) noexcept;        // the same, but that it failed, for want of that rank; -1: as said before
  void touch() noexcept;                      // a call in flight was looked after
  // The operation is over: state running -> joined. With a group: all that was in flight in it is; the state stays when
  // the record has gone on to a call of another.
  void end(std::string_view group = {}) noexcept;
  void finish() noexcept;  // the rank left in good order: no operation unfinished

  // By the launcher: which process it has started for which global rank, and how that has ended.
  void started(int rank, std::int64_t pid) noexcept;
  void ended(int wait_status) noexcept;
  // Nothing when no launcher has said so. Reads a file of /proc.
  std::optional<StartedProcess> process() const;
  // Parts of it, without: the rank, -1 when no launcher has said so; whether wait_status is known.
  int started_as() const noexcept;
  bool has_ended() const noexcept;

  // A consistent snapshot. Retries while the writer writes, for at most 20 ms; after that (the writer was stopped or
  // killed in the middle) `state`, `rank` and the process are still right and the rest is empty.
  RankActivity read() const;
  // True when a process joined, did not finish(), and is gone (pid dead, or reused by another process).
  bool lost() const;

 private:
  friend class ControlPage;
  RankRecord() = default;
  void set_state(RankActivity::State state) noexcept;
  core::RecordLayout* layout_ = nullptr;  // in the page
};

// One mapped file per node and job: the job's abort cause, and a record for each local rank. Fixed size, no locks.
//
// Thread safe, and safe between processes; a process that is killed at any instruction leaves a readable page.
class COL_EXPORT ControlPage {
 public:
  static constexpr std::size_t kMaxMessage = 480;

  // Creates the file (mode 0600, written whole and renamed into place) for `local_ranks` ranks. Throws io or resource.
  static std::shared_ptr<ControlPage> create(const std::string& path, int local_ranks, std::string_view job_id);
  // Maps an existing page. Throws io when it cannot be opened, mismatch when it is no control page of this version or
  // belongs to another job.
  static std::shared_ptr<ControlPage> open(const std::string& path, std::string_view job_id);
  // open(), or create() by whichever process comes first.
  static std::shared_ptr<ControlPage> open_or_create(const std::string& path, int local_ranks, std::string_view job_id);
  // A page in private memory, for ranks that are threads of one process.
  static std::shared_ptr<ControlPage> in_memory(int local_ranks);

  ~ControlPage();
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;

  int local_ranks() const noexcept;
  // Requires: 0 <= local_rank < local_ranks(); throws invalid_argument otherwise.
  RankRecord& record(int local_rank) const;
  // What all ranks that have joined are doing; `stopped` where that is asked for, at the cost of a file of /proc each.
  std::vector<RankActivity> activities(bool look_for_stopped = true) const;

  // Records why the job ends. The first cause wins and is never changed; returns whether this one was it.
  bool abort(const AbortCause& cause) noexcept;
  bool aborted() const noexcept;  // one load
  // Nothing as long as aborted() is false; a cause once it is true. Blocks at most 100 ms, and only when the process
  // that aborts is writing at this moment; if it was killed while it did, the cause says so.
  std::optional<AbortCause> abort_cause() const;

 private:
  struct Impl;
  explicit ControlPage(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The rank at the end of the chain that begins with global rank `first`: who waits for whom, until one does not wait,
// or stands still. Null where the chain is a circle, or leads to a rank that is not there.
COL_EXPORT const RankActivity* last_in_chain(const std::vector<RankActivity>& activities, int first);

// What a wait has to know besides its deadline. Implemented by the group layer, which can tell who is missing.
class COL_EXPORT WaitObserver {
 public:
  virtual ~WaitObserver();
  // Called from check() once a wait has lasted 100 ms, then at growing intervals up to 1 s. Throws to end the wait
  // (mismatch, peer_lost, aborted) or returns to let it go on; true when it wants to look again soon.
  virtual bool on_slow(Duration waited) = 0;
  // Called from check() when the deadline has passed; throws the timeout with the names of those who are missing.
  virtual void on_timeout(Duration budget) = 0;
};

// Passed to every wait. Not thread safe: one per waiting call.
//
//   WaitContext wait(Deadline::after(5s), page, record);
//   while (!ready()) { block_at_most(wait.slice()); wait.check(); }
class COL_EXPORT WaitContext {
 public:
  explicit WaitContext(Deadline deadline, ControlPage* page = nullptr, RankRecord* record = nullptr,
                       WaitObserver* observer = nullptr) noexcept;
  // The same with a deadline `budget` after the first check(), slice() or deadline(): for calls that mostly end without
  // any, and then need no look at the clock.
  explicit WaitContext(Duration budget, ControlPage* page = nullptr, RankRecord* record = nullptr,
                       WaitObserver* observer = nullptr) noexcept;

  ~WaitContext() { resume(); }
  WaitContext(const WaitContext&) = delete;
  WaitContext& operator=(const WaitContext&) = delete;

  const Deadline& deadline() noexcept {
    start();
    return deadline_;
  }
  ControlPage* page() const noexcept { return page_; }
  RankRecord* record() const noexcept { return record_; }

  // What is waited for, in words, for the message of a timeout: "key 'x'", "data from rank 3".
  void describe(std::string what) {
    what_ = std::move(what);
    ask_what_ = nullptr;
  }
  // The same, asked for only when the wait has failed: for waits that must not allocate.
  void describe(std::function<std::string()> what) { ask_what_ = std::move(what); }

  // Says in the record that this rank waits, until this context ends: in which step of a plan, for which rank of the
  // group (-1: none, several). check() says it of every wait that lasts.
  void waiting(std::int32_t step, std::int32_t peer) noexcept {
    if (record_ == nullptr) return;
    told_ = true;
    record_->waiting(step, peer);
  }

  // The wait is over, though not what it was part of.
  void resume() noexcept {
    if (std::exchange(told_, false)) record_->resume();
  }

  // What this rank does for others while it waits: called by each check(), which throws what it throws.
  void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }

  // Throws when the wait must end: the job's abort cause as an Error of that code; what the observer throws; timeout.
  // Cheap when nothing is wrong (a load and a clock read).
  void check();

  // The observer's part of check() alone, for who does not wait, but comes by again and again.
  void look();

  // Whoever waits has reason to think that the wait is in vain: the observer is asked at the next check().
  void hurry() noexcept;

  // How long a blocking primitive may sleep before the next check(): never beyond the deadline, at most 50 ms.
  Duration slice() noexcept;

 private:
  void start() noexcept;
  void look(Deadline::Clock::time_point now);

  bool is_started_ = true;
  bool told_ = false;  // the record, that this rank waits
  Deadline deadline_;
  ControlPage* page_;
  RankRecord* record_;
  WaitObserver* observer_;
  Deadline::Clock::time_point started_;
  Deadline::Clock::time_point next_slow_;
  Duration slow_interval_;
  std::string what_;
  std::function<std::string()> ask_what_;
  std::function<void()> meanwhile_;
};

}  // namespace col

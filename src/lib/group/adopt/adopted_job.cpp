#include "group/adopt/adopted_job.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/proof.hpp>

#include "core/clock/lock.hpp"
#include "core/env.hpp"
#include "core/fork_guard.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text_file.hpp"
#include "group/adopt/job_store.hpp"
#include "group/adopt/meeting_point.hpp"
#include "group/adopt/places.hpp"
#include "group/adopt/pmi.hpp"
#include "group/adopt/served_store.hpp"
#include "group/adopt/user_directory.hpp"
#include "group/call/operation.hpp"
#include "group/join/host.hpp"
#include "store/base/call_limit.hpp"
#include "store/tcp/socket.hpp"
#include "store/tcp/token.hpp"

namespace col::group::adopt {
namespace {

constexpr Duration kDefaultTimeout = std::chrono::minutes(5);
// How long a look at the other directories waits for processes that change something there.
constexpr Duration kLookTime = std::chrono::milliseconds(500);

// The process that has started this one, as nothing else tells jobs apart: its number and start time.
std::string parent_process() {
  const auto parent = ::getppid();
  std::string start;
  try {
    const std::string stat = core::read_text_file(fmt::format("/proc/{}/stat", parent), "the launcher's state");
    // Field 22; field 2 is the program's name in parentheses, and may hold anything.
    std::size_t at = stat.rfind(')');
    for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
    if (at != std::string::npos) start = stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
  } catch (const Error&) {  // no /proc: the number has to do
  }
  return fmt::format("process {} {}", parent, start);
}

// All ranks of the job know it without communication. It keeps other jobs out by accident, but not by intent: a process
// that knows the variables of the job can compute it.
std::string derived_token(const std::string& job) {
  return fmt::format("{:016x}", core::Hash().add("col store").add(job).value());
}

// The part of a job over several hosts that is on this one, as its directory is called. Those that share a directory
// for temporary files may be several to the launcher, or to the kernel.
std::string name_on_host(const std::string& job, const LaunchedRank& own) {
  const Host& host = this_host();
  return fmt::format("{}-{:016x}", own.launcher,
                     core::Hash()
                         .add(job)
                         .add(own.node)
                         .add(host.boot_id)
                         .add(host.network_namespace)
                         .add(host.pid_namespace)
                         .value());
}

// The jobs that this process is in, at most one but in tests. The launcher is asked for a name, and the directory
// entered, once for all contexts of the process. A process that was forked has an object of its own.
class ProcessJobs {
 public:
  explicit ProcessJobs(ProcessJobs* forked_from) : parent_(forked_from) {}
  static ProcessJobs& instance();

  void join(LaunchedRank own, ContextSpec& spec) {
    const Duration timeout = spec.timeout > Duration::zero() ? spec.timeout : kDefaultTimeout;
    // A conversation with the launcher is not for two processes.
    const std::string place = own.pmi_fd ? fmt::format("PMI_FD={}", *own.pmi_fd)
                                         : fmt::format("{} {} {} {}", core::env::get("COL_JOB_ID").value_or(""),
                                                       own.job, own.restart_count, own.believed);
    for (ProcessJobs* each = parent_; each != nullptr; each = each->parent_) {
      if (!each->may_have(place)) continue;
      throw Error(ErrorCode::not_initialized,
                  "this process was forked from one that is in the job already; start it with an environment of its "
                  "own");
    }
    const std::lock_guard lock(mutex_);
    places_.insert(place);
    if (own.several_hosts.empty())
      join_on_one_host(own, spec, timeout);
    else
      join_on_several(own, spec, timeout);
  }

  void leave_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& [key, job] : local_jobs_) {
      if (job.store) job.store->leave();
    }
    for (auto& [key, job] : spread_jobs_) job.leave(Leaving::exiting);
  }

  // Leaves the directory of this host, if `store` belongs to a job over several hosts.
  void leave_directory(const Store* store) noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& [key, job] : spread_jobs_) {
      if (job.store.get() == store && job.directory) job.directory->leave();
    }
  }

 private:
  struct LocalJob {
    std::shared_ptr<JobStore> store;       // shared with the contexts
    std::shared_ptr<ControlPage> control;  // shared with the contexts
    std::string path;
  };
  struct SpreadJob {
    std::shared_ptr<ServedStore> store;       // shared with the contexts
    std::unique_ptr<JobDirectory> directory;  // null with COL_CONTROL, and when no other rank is here
    std::shared_ptr<ControlPage> control;     // shared with the contexts
    std::string path;

    void leave(Leaving why) noexcept {
      if (directory) directory->leave();
      if (store) store->leave(why);
    }
  };

  // Requires: this process was forked from that of the object. Its lock may be that of a thread which is not there.
  bool may_have(const std::string& place) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return !lock || places_.count(place) != 0;
  }

  void join_on_one_host(LaunchedRank& own, ContextSpec& spec, Duration timeout) {
    name(own, timeout);
    const JobKey key{job_name(own), own.rank, own.world_size};
    spec.job_id = core::env::get("COL_JOB_ID").value_or(key.job);
    const std::string parent = temporary_directory();
    LocalJob& job = local_jobs_[fmt::format("{} {} {} {}", key.job, key.rank, key.world_size, parent)];
    if (!job.store) job.store = std::make_shared<JobStore>(key, parent, timeout);
    if (std::string path = job.store->enter(); path != job.path) {
      job.control = ControlPage::open_or_create(path + "/control", spec.local_world_size, spec.job_id);
      job.path = std::move(path);
      core::log::info("rank {} of {} by {}'s {}; the ranks meet in {}", spec.rank, spec.world_size, own.launcher,
                      own.believed, job.path);
    }
    spec.store = job.store;
    spec.control = job.control;
  }

  void join_on_several(LaunchedRank& own, ContextSpec& spec, Duration timeout) {
    MeetingPoint point =
        find_meeting_point(own, core::env::get, full_host_name, [&] { return first_host(own, timeout); });
    if (auto id = core::env::get("COL_JOB_ID"))
      own.job = *std::move(id);
    else if (own.job.empty() && !own.pmi_fd)
      own.job = point.job;
    name(own, timeout);
    // Each agent of torchrun counts the restarts that it has seen; its port is another one each time.
    if (own.launcher == "torchrun") own.restart_count = spec.restart_count = 0;
    const std::string job_id = job_name(own);
    spec.job_id = core::env::get("COL_JOB_ID").value_or(job_id);
    if (point.port == 0) point.port = job_port(job_id);

    SpreadJob& job =
        spread_jobs_[fmt::format("{} {} {} {} {}", job_id, own.rank, own.world_size, point.host, point.port)];
    enter_directory(job, job_id, own, spec, timeout);
    if (!job.store) {
      std::string token = store::tcp::token_from_environment();
      if (token.empty()) token = derived_token(job_id);
      job.store = std::make_shared<ServedStore>(ServedSpec{.rank = own.rank,
                                                           .world_size = own.world_size,
                                                           .server = point.server,
                                                           .serves = point.serves.value_or(own.rank == 0),
                                                           .host = point.host,
                                                           .port = point.port,
                                                           .source = point.source,
                                                           .token = std::move(token),
                                                           .timeout = timeout,
                                                           .control = job.control});
      core::log::info("rank {} of {} by {}'s {}; {} serves the ranks at {} ({})", spec.rank, spec.world_size,
                      own.launcher, own.believed, point.server, store::tcp::url_of({point.host, point.port}),
                      point.source);
    }
    job.store->serve();
    spec.store = job.store;
    spec.control = job.control;
  }

  // The control page of the ranks of this host.
  static void enter_directory(SpreadJob& job, const std::string& job_id, const LaunchedRank& own,
                              const ContextSpec& spec, Duration timeout) {
    if (const auto path = core::env::get("COL_CONTROL")) {
      if (!job.control) job.control = ControlPage::open(*path, spec.job_id);
      return;
    }
    if (own.local_world_size == 1) {  // nobody to share it with: a pod needs no directory to write to
      if (!job.control) job.control = ControlPage::in_memory(1);
      return;
    }
    if (!job.directory)
      job.directory = std::make_unique<JobDirectory>(
          JobKey{name_on_host(job_id, own), spec.local_rank, spec.local_world_size}, temporary_directory());
    job.directory->enter(timeout);
    if (job.directory->path() == job.path) return;
    job.path = job.directory->path();
    job.control = ControlPage::open_or_create(job.path + "/control", spec.local_world_size, spec.job_id);
  }

  // The host of rank 0, by its own word: as mpiexec has reached it, else its name.
  std::string first_host(const LaunchedRank& own, Duration timeout) {
    PmiJob& known = asked_[*own.pmi_fd];
    if (known.first_host.empty()) {
      const auto reached = core::env::get("MPIR_CVAR_CH3_INTERFACE_HOSTNAME");
      known = ask_pmi_for_meeting(*own.pmi_fd, own.rank, reached ? *reached : full_host_name(), timeout);
    }
    return known.first_host;
  }

  void name(LaunchedRank& own, Duration timeout) {
    if (!own.job.empty()) return;
    if (own.pmi_fd) {
      std::string& known = asked_[*own.pmi_fd].name;
      if (known.empty()) known = ask_pmi_for_job(*own.pmi_fd, timeout);
      own.job = known;
    } else {
      own.job = parent_process();
    }
  }

  ProcessJobs* const parent_;  // of the process that this one was forked from; null in the first
  const core::ForkGuard fork_guard_;
  core::Mutex mutex_;
  std::set<std::string> places_;  // that were joined, in the launchers' words
  std::map<std::string, LocalJob> local_jobs_;
  std::map<std::string, SpreadJob> spread_jobs_;
  std::map<int, PmiJob> asked_;  // by descriptor: the conversation is possible once
};

// Never destroyed: contexts may outlive any order of destruction. Its jobs are left at the end of the process.
ProcessJobs& ProcessJobs::instance() {
  static std::atomic<ProcessJobs*> of_process{nullptr};
  static const struct Leaver {
    ~Leaver() { instance().leave_all(); }
  } leaver;
  // acquire pairs with the release below: a thread that sees the object sees it complete.
  ProcessJobs* known = of_process.load(std::memory_order_acquire);
  while (known == nullptr || known->fork_guard_.is_forked_child()) {
    auto own = std::make_unique<ProcessJobs>(known);
    if (of_process.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
  }
  return *known;
}

}  // namespace

std::string job_name(const LaunchedRank& own) {
  if (own.job.empty()) return {};
  return fmt::format("{}-{:016x}", own.launcher, core::Hash().add(own.job).add(own.restart_count).value());
}

void join_job(const LaunchedRank& own, ContextSpec& spec) {
  // Before ProcessJobs are there: what that does at the end of the process has to come before the end of libcrypto.
  if (!own.several_hosts.empty()) (void)make_proof({}, ProofRole::server, {});
  ProcessJobs::instance().join(own, spec);
}

void look_for_others(const ContextSpec& spec, bool is_last_look) {
  const auto store = std::dynamic_pointer_cast<JobStore>(spec.store);
  if (!store) return;  // over several hosts, and with a store of the user's, all meet in one
  std::optional<Error> why;
  try {
    why = store->why_apart(store::CallLimit::bound(Deadline::after(kLookTime)).remaining(), is_last_look);
  } catch (const Error&) {  // the directory is locked, or gone: the wait goes on
  }
  if (why) throw *why;
}

void leave_job(const ContextSpec& spec, bool failed) noexcept {
  const auto store = std::dynamic_pointer_cast<AdoptedStore>(spec.store);
  if (!store) return;
  const bool aborted = spec.control && spec.control->aborted();
  store->leave(failed || aborted ? Leaving::failed : Leaving::finished);
  ProcessJobs::instance().leave_directory(store.get());
}

std::string ranks_as_launched(const std::vector<int>& ranks, const ContextSpec& spec) {
  const bool is_adopted = !spec.launcher.empty() && spec.launcher != "colrun";
  const auto own = is_adopted ? find_launched_rank(core::env::get) : std::nullopt;
  if (!own || own->world_size != spec.world_size) return ranks_text(ranks);
  return ranks_on_hosts(ranks, hosts_of_ranks(*own, core::env::get, [] { return this_host().hostname; }));
}

Error with_place(const Error& error, const ContextSpec& spec) {
  if (error.code() != ErrorCode::timeout || spec.launcher.empty() || spec.launcher == "colrun") return error;
  const auto own = find_launched_rank(core::env::get);
  if (!own) return error;
  return Error(error.code(),
               fmt::format("{}; this process is rank {} of {} by {}'s variables: {}", error.message(), spec.rank,
                           spec.world_size, own->launcher, own->believed),
               error.group(), error.rank(), error.world_rank());
}

}  // namespace col::group::adopt

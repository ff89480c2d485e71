#include "group/adopt/local_job.hpp"

#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "core/env.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text_file.hpp"
#include "group/adopt/job_store.hpp"
#include "group/adopt/pmi.hpp"
#include "group/adopt/user_directory.hpp"

namespace col::group::adopt {
namespace {

constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

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

// The jobs that this process is in, at most one but in tests. The launcher is asked for a name, and the directory
// entered, once for all contexts of the process.
class ProcessJobs {
 public:
  struct Job {
    std::shared_ptr<JobStore> store;       // shared with the contexts
    std::shared_ptr<ControlPage> control;  // shared with the contexts
    std::string path;
  };

  void join(Place place, ContextSpec& spec) {
    const Duration timeout = spec.timeout > Duration::zero() ? spec.timeout : kDefaultTimeout;
    const std::lock_guard lock(mutex_);
    if (owner_ != 0 && owner_ != ::getpid())
      throw Error(ErrorCode::not_initialized,
                  "this process was forked from one that is in the job already; start it with an environment of its "
                  "own");
    owner_ = ::getpid();
    name(place, timeout);
    const JobKey key{job_name(place), place.rank, place.world_size};
    spec.job_id = core::env::get("COL_JOB_ID").value_or(key.job);
    const std::string parent = temporary_directory();
    Job& job = jobs_[fmt::format("{} {} {} {}", key.job, key.rank, key.world_size, parent)];
    if (!job.store) job.store = std::make_shared<JobStore>(key, parent, timeout);
    if (std::string path = job.store->enter(); path != job.path) {
      job.control = ControlPage::open_or_create(path + "/control", spec.local_world_size, spec.job_id);
      job.path = std::move(path);
      core::log::info("rank {} of {} by {}'s {}; the ranks meet in {}", spec.rank, spec.world_size, place.launcher,
                      place.believed, job.path);
    }
    spec.store = job.store;
    spec.control = job.control;
  }

  void leave_all() noexcept {
    const std::lock_guard lock(mutex_);
    if (owner_ != ::getpid()) return;
    for (auto& [key, job] : jobs_) {
      if (job.store) job.store->leave();
    }
  }

 private:
  void name(Place& place, Duration timeout) {
    if (!place.job.empty()) return;
    if (place.pmi_fd) {
      std::string& known = asked_[*place.pmi_fd];
      if (known.empty()) known = ask_pmi_for_job(*place.pmi_fd, timeout);
      place.job = known;
    } else {
      place.job = parent_process();
    }
  }

  std::mutex mutex_;
  pid_t owner_ = 0;
  std::map<std::string, Job> jobs_;
  std::map<int, std::string> asked_;  // by descriptor: the conversation is possible once
};

// Never destroyed: contexts may outlive any order of destruction. Its jobs are left at the end of the process.
ProcessJobs& process_jobs() {
  static ProcessJobs* const jobs = new ProcessJobs;
  static const struct Leaver {
    ~Leaver() { jobs->leave_all(); }
  } leaver;
  return *jobs;
}

}  // namespace

std::string job_name(const Place& place) {
  if (place.job.empty()) return {};
  return fmt::format("{}-{:016x}", place.launcher, core::Hash().add(place.job).add(place.restart_count).value());
}

void join_local_job(const Place& place, ContextSpec& spec) {
  if (!place.several_hosts.empty())
    throw Error(
        ErrorCode::unavailable,
        fmt::format("the ranks are on several hosts ({}); for that, set COL_STORE=file:///directory to one on a "
                    "file system that all hosts share",
                    place.several_hosts));
  process_jobs().join(place, spec);
}

void leave_local_job(const ContextSpec& spec) noexcept {
  if (const auto store = std::dynamic_pointer_cast<JobStore>(spec.store)) store->leave();
}

Error with_place(const Error& error, const ContextSpec& spec) {
  if (error.code() != ErrorCode::timeout || spec.launcher.empty() || spec.launcher == "colrun") return error;
  const auto place = find_place(core::env::get);
  if (!place) return error;
  return Error(error.code(),
               fmt::format("{}; this process is rank {} of {} by {}'s variables: {}", error.message(), spec.rank,
                           spec.world_size, place->launcher, place->believed),
               error.group(), error.rank());
}

}  // namespace col::group::adopt

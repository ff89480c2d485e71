// The process that the user started, and how a job's processes stand to each other:
//
//     front ("colrun")          the user's process: gets the signals, gives the exit status
//       │ lifeline (a socket)   carries forwarded signals; its end tells the watcher that the front is gone
//       ▼
//     watcher ("col-watcher")   own session; makes the job directory, starts the ranks, passes their output on,
//       │                       ends them, sweeps what they leave behind, removes the directory
//       ├─ rank 0 … rank n-1    own process groups; die with the watcher (PDEATHSIG)
//       └─ orphans of ranks     (setsid'ed, double-forked …) become the watcher's children: it is a subreaper
//
// Front killed by SIGKILL: the watcher sees the end of the lifeline, kills all below it, removes the directory.
// Watcher killed by SIGKILL: the ranks die at once; their orphans become children of the front, a subreaper too, which
// kills them and removes the directory. So every process of the job is at all times a descendant of one that will end
// it, whatever it did to its session, group, parent or environment: no list of pids to keep, none to be reused.
// Both killed in the same instant: ranks die, but a detached orphan and the directory stay. Only a cgroup could do
// more.
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "launch/inspect.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/launch.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/output/sink.hpp"
#include "launch/output/terminal.hpp"
#include "launch/place/placement.hpp"
#include "launch/processes/environment.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/limits.hpp"
#include "launch/processes/processes.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/report_json.hpp"
#include "launch/supervise/ending.hpp"
#include "launch/top/view.hpp"
#include "launch/watcher.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;
using tools::exit_code::kUsage;

// While it lives, orphans of our descendants become our children.
class SubreaperScope {
 public:
  SubreaperScope() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~SubreaperScope() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  SubreaperScope(const SubreaperScope&) = delete;
  SubreaperScope& operator=(const SubreaperScope&) = delete;

 private:
  int before_ = 0;
};

// A job in the background must not take the terminal's input from the shell.
bool is_background_terminal(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  return foreground >= 0 && foreground != ::getpgrp();
}

// Does nothing when the watcher is gone.
void tell_watcher(int lifeline, int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  ::send(lifeline, &byte, 1, MSG_NOSIGNAL);
}

void forward_signals(SignalGate& signals, int lifeline) {
  while (const int signal = signals.next()) {
    if (signal == SIGCHLD) continue;
    // We would go on at once, and the ranks would be stopped and continued with no time between. What a rank forks just
    // then may stay stopped for ever: to a new process Linux delivers the first signal but not the second.
    if (signal == SIGTSTP && !could_be_continued()) continue;
    tell_watcher(lifeline, signal);
    if (signal != SIGTSTP) continue;
    stop_self();
    tell_watcher(lifeline, SIGCONT);
  }
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

// Passes signals on, and input from `head` (may be null), until the watcher has ended, which SIGCHLD tells; does not
// reap it. When the other launcher is gone, the lifeline ends.
void attend(pid_t watcher, SignalGate& signals, UniqueFd lifeline, HeadLink* head, Watching* watching) {
  constexpr std::chrono::milliseconds kNap{20};
  pollfd events[] = {{signals.fd(), POLLIN, 0}, {-1, 0, 0}, {-1, 0, 0}};
  while (!has_ended(watcher)) {
    if (head != nullptr) head->prepare(events[1], events[2]);
    if (!lifeline) events[0].fd = -1;  // there is nobody to tell: signals stay where they are, SIGCHLD too
    const bool passes_output = watching != nullptr && !watching->is_shown();
    if (core::poll_for(events, lifeline && !passes_output ? Deadline::kMaxBudget : Duration(kNap)) < 0) continue;
    if ((events[0].revents & POLLIN) != 0 && lifeline) forward_signals(signals, lifeline.get());
    if (head != nullptr && !head->on_polled(events[1], events[2])) lifeline.reset();
    if (watching != nullptr) watching->work();
  }
}

void write_all(int fd, std::string_view name, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw LaunchError(kLauncher, "cannot write to {}: {}; send it to a place that takes it", name, strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

JobResult clean_up_after(pid_t watcher, int wait_status, const ProcessInfo& process, const std::string& job_id) {
  // Children of ours that are older than the watcher belong to somebody else (`exec colrun` in a script).
  const std::size_t left = kill_children(process.start_ticks, Ending::Clock::now() + Ending::kKillWait);
  const JobDirectory directory(job_id);
  const bool removed = directory.remove();
  JobResult result;
  result.exit_code = kLauncher;
  result.error = fmt::format("the job's watcher process (pid {}) {}, so all ranks were ended{}{}", watcher,
                             describe_wait_status(wait_status),
                             left == 0 ? "" : fmt::format("; {} processes survived SIGKILL", left),
                             removed ? "" : fmt::format("; remove {} by hand", directory.path()));
  return result;
}

std::vector<std::string> resolve_programs(const JobSpec& spec) {
  std::vector<std::string> paths;
  for (const Program& program : spec.programs) paths.push_back(resolve_program(program.command.front()));
  return paths;
}

// Says what was asked for without starting anything. Returns whether that is all.
bool only_inspects(const JobSpec& spec, const Rendezvous& rendezvous, const Placement& placement) {
  const InspectSpec& inspect = spec.inspect;
  const std::string host = host_name();
  const Assignment assignment{.node_rank = std::max(0, rendezvous.node_rank),
                              .nodes = rendezvous.max_nodes,
                              .first_rank = std::max(0, rendezvous.node_rank) * spec.local_ranks(),
                              .local_ranks = spec.local_ranks(),
                              .world_size = rendezvous.max_nodes * spec.local_ranks(),
                              .job_id = "job"};
  std::string text;
  if (inspect.dry_run || inspect.display_map) text += map_text(spec, placement, rendezvous, assignment, host);
  if (inspect.report_bindings) {
    std::vector<int> ranks(static_cast<std::size_t>(spec.local_ranks()));
    std::iota(ranks.begin(), ranks.end(), assignment.first_rank);
    for (const std::string& line : describe_bindings(placement.topology, placement.binding, ranks)) text += line + "\n";
  }
  if (inspect.print_environment) text += environment_text(spec, placement, assignment, host);
  const bool is_all = inspect.dry_run || inspect.print_environment;
  // What the ranks print may be read by a program; this is for the user.
  if (is_all)
    write_all(spec.stdout_fd, "stdout", text);
  else
    write_all(spec.stderr_fd, "stderr", text);
  return is_all;
}

// A launcher on another host has been told.
void settle_unfinished_lines(JobSpec& spec, const Rendezvous& rendezvous) {
  OutputSpec& output = spec.output;
  output.out = unfinished_at(spec.stdout_fd);
  output.err = unfinished_at(spec.stderr_fd);
  // The launcher speaks on stderr; nothing can tear the stdout of a single rank.
  if (output.out == Unfinished::held && has_one_rank(spec, rendezvous) && !same_file(spec.stdout_fd, spec.stderr_fd))
    output.out = Unfinished::passed;
}

JobResult run_checked(const JobSpec& asked, const Rendezvous& rendezvous, HeadLink* head) {
  JobSpec spec = asked;
  if (head == nullptr) settle_unfinished_lines(spec, rendezvous);
  spec.inspect.times = spec.inspect.times || spec.inspect.report || !spec.inspect.json_path.empty();
  if (spec.stdin_fd >= 0 && is_background_terminal(spec.stdin_fd)) spec.stdin_fd = -1;
  const std::vector<std::string> programs = resolve_programs(spec);
  const auto threads = [&](int otherwise) { return most_threads(spec, std::getenv("OMP_NUM_THREADS"), otherwise); };
  Placement placement = place_ranks(spec, threads);
  if (only_inspects(spec, rendezvous, placement)) return {};
  const Needs needs = needs_of(spec, rendezvous);
  check_open_files(needs);
  check_processes(needs);
  const std::string job_id = make_job_id();
  std::optional<Watching> watching;
  if (spec.inspect.watch) watching.emplace(spec);
  SharedReport report;
  SignalGate signals;
  SubreaperScope subreaper;
  int ends[2];
  // Not a pipe: telling a watcher that has just ended must not raise SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError(kLauncher, "cannot create a socket pair: {}", strerror(errno));
  UniqueFd lifeline_read(ends[0]);
  UniqueFd lifeline(ends[1]);

  // The watcher makes it raw, and restores it unless it is killed.
  std::optional<RawTerminal> terminal;
  if (spec.output.pty && spec.stdin_fd >= 0) terminal.emplace(spec.stdin_fd);
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    lifeline.reset();
    if (head != nullptr) head->leave_to_parent();
    placement.locks.leave_to_parent();
    watch_job({.job = {.spec = spec,
                       .programs = programs,
                       .placement = placement,
                       .job_id = job_id,
                       .rendezvous = rendezvous,
                       .signals = signals,
                       .lifeline = lifeline_read.get()},
               .report = report});
  }
  if (watcher < 0) {
    throw LaunchError(kLauncher, "cannot start the watcher process: {}",
                      why_no_process(errno, static_cast<int>(needs.processes)));
  }
  lifeline_read.reset();
  if (watching) watching->start(job_id, lifeline.get());
  if (spec.stdin_fd >= 0) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup3(null.get(), spec.stdin_fd, spec.stdin_fd > STDERR_FILENO ? O_CLOEXEC : 0);
  }
  attend(watcher, signals, std::move(lifeline), head, watching ? &*watching : nullptr);
  if (watching) watching->finish();
  if (terminal) terminal->restore();

  JobResult result;
  const bool has_reported = report.read(result);
  const ProcessInfo process = has_reported ? ProcessInfo() : read_process(watcher);  // still there: not reaped yet
  int wait_status = 0;
  ::waitpid(watcher, &wait_status, 0);
  return has_reported ? result : clean_up_after(watcher, wait_status, process, job_id);
}

}  // namespace

JobResult run_node(const JobSpec& spec, const Rendezvous& rendezvous, HeadLink* head) {
  try {
    return run_checked(spec, rendezvous, head);
  } catch (const LaunchError& error) {
    return launcher_failure(error.exit_code(), error.what());
  }
}

namespace {

// A job that never came to have ranks has a report as well: what an earlier run left there must not be taken for it.
void report_failed_start(const JobSpec& spec, const JobResult& result) {
  if (spec.inspect.json_path.empty() || result.cause != EndCause::launcher_failed || result.error.empty()) return;
  JobStory story;
  story.tool = spec.tool;
  story.command_line = spec.command_line;
  story.directory = current_directory();
  story.started_at = core::wall_now();
  story.result = result;
  const std::string text = report_json_text(story);
  try {
    if (spec.inspect.json_path == "-")
      write_all(spec.stdout_fd, "stdout", text);
    else
      tools::write_file(spec.inspect.json_path, text);
  } catch (const std::exception&) {  // the error that is said is the more important one
  }
}

// Nobody runs a job for hours to hear that its report, or its trace, has nowhere to go. Of several nodes the first one
// writes it.
void check_report(const JobSpec& spec, const Rendezvous& meeting) {
  const bool is_first = meeting.alone || !meeting.remotes.empty() || meeting.node_rank == 0 ||
                        (meeting.node_rank < 0 && is_this_host(meeting.endpoints.front().host));
  if (!is_first) return;
  const std::pair<std::string_view, const std::string&> files[] = {{"--json", spec.inspect.json_path},
                                                                   {"--trace", spec.inspect.trace_path}};
  for (const auto& [option, path] : files) {
    if (path.empty() || (path == "-" && option == "--json")) continue;
    try {
      tools::check_writable(path);
    } catch (const tools::WriteError& error) {
      throw LaunchError(kUsage, "{}: {}", option, error.what());
    }
  }
}

JobResult run_planned(JobSpec& spec) {
  const Lookup lookup = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
  };
  try {
    const Rendezvous rendezvous = plan_rendezvous(spec, lookup);
    check_report(spec, rendezvous);
    return run_node(spec, rendezvous);
  } catch (const LaunchError& error) {
    return launcher_failure(error.exit_code(), error.what());
  }
}

}  // namespace

JobResult run(const JobSpec& asked) {
  JobSpec spec = asked;
  const JobResult result = run_planned(spec);
  report_failed_start(spec, result);
  return result;
}

}  // namespace col::launch

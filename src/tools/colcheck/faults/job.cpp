#include "colcheck/faults/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "json/json_fields.hpp"

namespace col::colcheck {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLongestNap = milliseconds(500);
// The kernel wakes nobody up when a child stops.
constexpr Duration kStopPoll = milliseconds(2);
constexpr std::size_t kKeptOutput = 2000;
constexpr double kForever = 1e9;

// What is passed on of the caller's environment: nothing that any launcher sets, and nothing that changes what col does
// but where its parts are, which GPUs it has (or stand-ins for them), and which of several ways to the same bits it
// takes.
constexpr std::array<std::string_view, 9> kKept = {
    "PATH",    "HOME",         "LANG", "TZ", "COL_PLUGIN_PATH", "COL_NCCL_LIBRARY", "LLVM_PROFILE_FILE",
    "COL_CMA", "COL_CALIBRATE"};
constexpr std::array<std::string_view, 8> kKeptPrefixes = {"LC_",   "LD_",   "GCOV_",     "MALLOC_",
                                                           "CUDA_", "NCCL_", "FAKE_GPU_", "FAKE_NCCL_"};

bool is_kept(std::string_view name) {
  if (std::ranges::find(kKept, name) != kKept.end() || name.ends_with("SAN_OPTIONS")) return true;
  return std::ranges::any_of(kKeptPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Below the launcher's own directory, if there is one: it is removed with it, even if this process is killed. The job's
// own /dev/shm hides that of the machine.
std::string parent_of_directory(bool has_own_shm) {
  const char* const control = std::getenv("COL_CONTROL");
  std::error_code none;
  const auto parent =
      control != nullptr ? std::filesystem::path(control).parent_path() : std::filesystem::temp_directory_path(none);
  return has_own_shm && parent.string().starts_with("/dev/shm") ? "/tmp" : parent.string();
}

// Children of a process that ignores SIGCHLD leave no status behind.
void keep_children() {
  struct sigaction now {};
  ::sigaction(SIGCHLD, nullptr, &now);
  if (now.sa_handler != SIG_IGN && (now.sa_flags & SA_NOCLDWAIT) == 0) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);
}

// See start_ranks_by().
std::string& rank_starter() {
  static std::string program;
  return program;
}

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// All that is there now; closes `fd` at its end.
void read_into(tools::UniqueFd& fd, std::string& text) {
  std::array<char, 4096> buffer;
  while (fd) {
    const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
    if (length > 0)
      text.append(buffer.data(), static_cast<std::size_t>(length));
    else if (length == 0 || (errno != EINTR && errno != EAGAIN))
      fd.reset();
    else if (errno == EAGAIN)
      return;
  }
}

}  // namespace

void start_ranks_by(std::string program) {
  rank_starter() = std::move(program);
}

bool are_ranks_elsewhere() {
  return !rank_starter().empty();
}

template <class Visit>
void fields(Report& report, Visit& visit) {
  auto& [code, error_rank, message, doing, seconds, later, regrouped, at_ns] = report;
  visit("code", code);
  visit("rank", error_rank);
  visit("message", message);
  visit("doing", doing);
  visit("seconds", seconds);
  visit("later", later);
  visit("regrouped", regrouped);
  visit("at_ns", at_ns);
}

std::string encode(const Report& report) {
  return core::json_line(report);
}

std::optional<Report> decode_report(std::string_view line) {
  try {
    return core::parsed_json<Report>(line, "report");
  } catch (const Error&) {  // a rank that was killed in the middle of its line
    return std::nullopt;
  }
}

struct Job::RankSide {
  tools::UniqueFd talk, output;
  std::string heard = {};  // the beginning of a line
  std::vector<std::string> points = {};
  RankEnd end = {};
  std::unique_ptr<Process> process = {};

  bool is_at(std::string_view point) const {
    if (point == "stopped") return process->stopped();
    return point == "report" ? end.report.has_value() : std::ranges::find(points, point) != points.end();
  }
  void listen(std::uint64_t job_started_ns) {
    read_into(talk, heard);
    for (std::size_t at = heard.find('\n'); at != std::string::npos; at = heard.find('\n')) {
      const std::string line = heard.substr(0, at);
      heard.erase(0, at + 1);
      constexpr std::string_view kAt = "at ";
      if (line.starts_with(kAt)) {
        points.push_back(line.substr(kAt.size()));
      } else if (auto report = decode_report(line)) {
        end.reported_at = static_cast<double>(report->at_ns - job_started_ns) * 1e-9;
        end.report = std::move(*report);
      }
    }
    read_into(output, end.output);
    if (end.output.size() > kKeptOutput) end.output.erase(0, end.output.size() - kKeptOutput);
  }
  void look_for_end(double now) {
    if (!process->running()) return;
    if (const auto& ending = process->try_end()) {
      end.ending = *ending;
      end.ended_at = now;
    }
  }
};

Job::Job(JobSpec spec)
    : spec_(std::move(spec)),
      started_ns_(core::clock_ns()),
      started_(core::wall_now()),
      id_("fault-" + launch::make_job_id()),
      directory_(id_, parent_of_directory(spec_.shm != nullptr)) {
  keep_children();
  directory_.create();
  try {
    if (::mkdir((directory_.path() + "/tmp").c_str(), 0700) != 0) throw_errno("cannot make the job's TMPDIR");
    for (int rank = 0; rank < spec_.ranks; ++rank) start(rank);
  } catch (...) {
    sides_.clear();
    directory_.remove();
    throw;
  }
}

Job::~Job() {
  sides_.clear();
  directory_.remove();
}

std::vector<std::string> Job::environment_of(int rank) const {
  std::vector<std::string> all = spec_.environment;
  // Each name once: of two, some programs on the way to the rank take the first, others the last.
  const auto add = [&all](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(all, [&](const std::string& known) { return known.starts_with(name); }))
      all.emplace_back(variable);
  };
  add("TMPDIR=" + directory_.path() + "/tmp");
  for (const char* const name : {"COL_RANK", "COL_LOCAL_RANK"}) add(fmt::format("{}={}", name, rank));
  for (const char* const name : {"COL_WORLD_SIZE", "COL_LOCAL_WORLD_SIZE"})
    add(fmt::format("{}={}", name, spec_.ranks));
  add("COL_JOB_ID=" + id_);
  add("COL_STORE=file://" + store_directory());
  add(fmt::format("COL_TIMEOUT={}ms", std::chrono::duration_cast<milliseconds>(spec_.timeout).count()));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (is_kept(text.substr(0, text.find('=')))) add(text);
  }
  return all;
}

void Job::start(int rank) {
  int talk[2], output[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) != 0) throw_errno("socketpair");
  auto side = std::make_unique<RankSide>();
  side->talk.reset(talk[0]);
  const tools::UniqueFd its_talk(talk[1]);
  if (::pipe2(output, O_CLOEXEC) != 0) throw_errno("pipe");
  side->output.reset(output[0]);
  const tools::UniqueFd its_output(output[1]);
  for (const int own : {talk[0], output[0]}) {
    if (::fcntl(own, F_SETFL, ::fcntl(own, F_GETFL) | O_NONBLOCK) < 0) throw_errno("fcntl");
  }
  // A program that runs the command from there has another /proc/self/exe.
  std::vector<std::string> command = spec_.shm != nullptr ? spec_.shm->entering() : std::vector<std::string>();
  if (are_ranks_elsewhere()) command.insert(command.end(), {rank_starter(), std::to_string(rank)});
  command.push_back(command.empty() ? spec_.program : std::filesystem::canonical(spec_.program).string());
  command.insert(command.end(), spec_.arguments.begin(), spec_.arguments.end());
  side->process = std::make_unique<Process>(std::move(command), environment_of(rank), its_talk.get(), its_output.get());
  if (const auto& ending = side->process->try_end()) {
    side->end.ending = *ending;
    side->end.ended_at = now();
    side->end.output = side->process->why_not_executed();
  }
  sides_.push_back(std::move(side));
}

double Job::now() const {
  return static_cast<double>(core::clock_ns() - started_ns_) * 1e-9;
}

// ---- What happens

bool Job::all_ended() const {
  return std::ranges::none_of(sides_, [](const auto& side) { return side->process->running(); });
}

void Job::wait_for_events(Duration at_most) {
  std::vector<pollfd> watched;
  for (const auto& side : sides_) {
    if (side->process->running()) {
      watched.push_back({side->process->pidfd(), POLLIN, 0});
      at_most = std::min(at_most, side->process->longest_nap());
    }
    if (side->talk) watched.push_back({side->talk.get(), POLLIN, 0});
    if (side->output) watched.push_back({side->output.get(), POLLIN, 0});
  }
  core::poll_for(watched, at_most);
  for (const auto& side : sides_) side->look_for_end(now());  // first: the time counts
  for (const auto& side : sides_) side->listen(started_ns_);
}

bool Job::pump(const std::function<bool()>& done, Duration longest_nap, double until) {
  until = std::min(until, std::chrono::duration<double>(spec_.limit).count());
  for (;;) {
    if (done()) return true;
    const double left = until - now();
    if (all_ended() || left <= 0) return false;
    wait_for_events(std::min(longest_nap, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left))));
  }
}

// ---- What the caller does

bool Job::await(int rank, std::string_view point) {
  const RankSide& one = side(rank);
  pump([&] { return one.is_at(point) || !one.process->running(); }, point == "stopped" ? kStopPoll : kLongestNap,
       kForever);
  return one.is_at(point);
}

void Job::pause(Duration length) {
  pump([] { return false; }, length, now() + std::chrono::duration<double>(length).count());
}

void Job::go_on(int rank) {
  // A rank that has ended cannot be told; its end says enough.
  (void)::send(side(rank).talk.get(), "g", 1, MSG_NOSIGNAL);
}

void Job::signal(int rank, int number) {
  side(rank).process->signal(number);
}

JobEnd Job::finish() {
  pump([this] { return all_ended(); }, kLongestNap, kForever);
  for (const auto& side : sides_) {
    side->end.overdue = side->process->running();
    side->process->signal(SIGKILL);
  }
  // As long as they are: the kernel may take a moment for each.
  constexpr double kKillSeconds = 10;
  for (const double until = now() + kKillSeconds; !all_ended() && now() < until;) wait_for_events(kLongestNap);
  wait_for_events(Duration::zero());  // what they said last

  JobEnd end;
  end.left_behind = leftover({.job_id = id_,
                              .job_directory = directory_.path(),
                              .scratch_directory = directory_.path() + "/tmp",
                              .shm_directory = spec_.shm != nullptr ? spec_.shm->path() : "/dev/shm",
                              .started = started_});
  for (const auto& side : sides_) end.ranks.push_back(std::move(side->end));
  sides_.clear();
  if (!directory_.remove() && end.left_behind.empty()) end.left_behind = directory_.path();
  return end;
}

}  // namespace col::colcheck

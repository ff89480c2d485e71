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
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLongestNap = milliseconds(500);
// The kernel wakes nobody up when a child stops.
constexpr Duration kStopPoll = milliseconds(2);
constexpr std::size_t kKeptOutput = 2000;

// What is passed on of the caller's environment: nothing that any launcher sets, and nothing that changes what col does
// but where its parts are, which GPUs it has (or stand-ins for them), and which of several ways to the same bits it
// takes.
constexpr std::array<std::string_view, 9> kKept = {
    "PATH",    "HOME",         "LANG", "TZ", "COL_PLUGIN_PATH", "COL_NCCL_LIBRARY", "LLVM_PROFILE_FILE",
    "COL_CMA", "COL_CALIBRATE"};
constexpr std::array<std::string_view, 8> kKeptPrefixes = {"LC_",   "LD_",   "GCOV_",     "MALLOC_",
                                                           "CUDA_", "NCCL_", "FAKE_GPU_", "FAKE_NCCL_"};

bool is_kept(std::string_view name) {
  if (std::find(kKept.begin(), kKept.end(), name) != kKept.end() || name.ends_with("SAN_OPTIONS")) return true;
  return std::any_of(kKeptPrefixes.begin(), kKeptPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> kept_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (is_kept(text.substr(0, text.find('=')))) kept.emplace_back(text);
  }
  return kept;
}

std::string make_id() {
  std::random_device device;
  return fmt::format("fault-{}-{:08x}{:08x}", ::getpid(), device(), device());
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

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) throw_errno("fcntl");
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

struct Job::RankSide {
  tools::UniqueFd talk, output;
  std::string heard = {};  // the beginning of a line
  std::vector<std::string> points = {};
  RankEnd end = {};
  std::unique_ptr<Process> process = {};

  bool is_at(std::string_view point) const { return std::find(points.begin(), points.end(), point) != points.end(); }
};

void start_ranks_by(std::string program) {
  rank_starter() = std::move(program);
}

bool are_ranks_elsewhere() {
  return !rank_starter().empty();
}

JobSpec spec_of(const Drill& drill, JobSpec rest) {
  rest.ranks = drill.c.ranks;
  rest.arguments = {"--fault-rank", encode(drill)};
  return rest;
}

Job::Job(JobSpec spec)
    : spec_(std::move(spec)), started_ns_(core::clock_ns()), started_(core::wall_now()), id_(make_id()) {
  keep_children();
  try {
    make_directory();
    for (int rank = 0; rank < spec_.ranks; ++rank) start(rank);
  } catch (...) {
    clean_up();
    throw;
  }
}

Job::~Job() {
  clean_up();
}

void Job::make_directory() {
  std::error_code error;
  // Below the launcher's own directory, if there is one: it is removed with it, even if this process is killed.
  const char* const control = std::getenv("COL_CONTROL");
  std::filesystem::path parent =
      control != nullptr ? std::filesystem::path(control).parent_path() : std::filesystem::temp_directory_path(error);
  // The job's own /dev/shm hides that of the machine.
  const bool hidden = spec_.shm != nullptr && parent.string().starts_with("/dev/shm");
  if (error || hidden) parent = "/tmp";
  directory_ = parent / ("col-" + id_);
  for (const std::string& path : {directory_, store_directory(), directory_ + "/tmp"}) {
    if (::mkdir(path.c_str(), 0700) != 0) throw_errno("cannot make the directory " + path);
  }
}

std::vector<std::string> Job::environment_of(int rank) const {
  std::vector<std::string> all = kept_environment();
  const auto set = [&all](std::string_view name, const auto& value) {
    all.push_back(fmt::format("{}={}", name, value));
  };
  set("TMPDIR", directory_ + "/tmp");
  set("COL_RANK", rank);
  set("COL_WORLD_SIZE", spec_.ranks);
  set("COL_LOCAL_RANK", rank);
  set("COL_LOCAL_WORLD_SIZE", spec_.ranks);
  set("COL_JOB_ID", id_);
  set("COL_STORE", spec_.store.empty() ? "file://" + store_directory() : spec_.store);
  set("COL_TIMEOUT", fmt::format("{}ms", std::chrono::duration_cast<milliseconds>(spec_.timeout).count()));
  if (!spec_.fault.empty()) set("COL_FAULT", spec_.fault);
  // Of two of one name, the first counts.
  all.insert(all.begin(), spec_.environment.begin(), spec_.environment.end());
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
  set_nonblocking(side->talk.get());
  set_nonblocking(side->output.get());
  std::vector<std::string> command = {spec_.program};
  if (are_ranks_elsewhere())
    command = {rank_starter(), std::to_string(rank), std::filesystem::canonical(spec_.program).string()};
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

void Job::read_talk(RankSide& side) {
  read_into(side.talk, side.heard);
  for (std::size_t end = side.heard.find('\n'); end != std::string::npos; end = side.heard.find('\n')) {
    const std::string line = side.heard.substr(0, end);
    side.heard.erase(0, end + 1);
    constexpr std::string_view kAt = "at ";
    if (line.starts_with(kAt)) {
      side.points.push_back(line.substr(kAt.size()));
    } else if (auto report = decode_report(line)) {
      side.end.reported_at = static_cast<double>(report->at_ns - started_ns_) * 1e-9;
      side.end.report = std::move(*report);
    }
  }
}

void Job::note_end(RankSide& side) {
  if (!side.process->running()) return;
  const double at = now();
  const auto ending = side.process->try_end();
  if (!ending) return;
  side.end.ending = *ending;
  side.end.ended_at = at;
}

bool Job::running(int rank) const {
  return side(rank).process->running();
}

bool Job::all_ended() const {
  return std::none_of(sides_.begin(), sides_.end(), [](const auto& side) { return side->process->running(); });
}

void Job::wait_for_events(Duration at_most) {
  std::vector<pollfd> watched;
  for (const auto& side : sides_) {
    if (side->process->running()) {
      watched.push_back({side->process->pidfd(), POLLIN, 0});
      if (const auto nap = side->process->longest_nap()) at_most = std::min(at_most, *nap);
    }
    if (side->talk) watched.push_back({side->talk.get(), POLLIN, 0});
    if (side->output) watched.push_back({side->output.get(), POLLIN, 0});
  }
  core::poll_for(watched, at_most);
  for (const auto& side : sides_) note_end(*side);  // first: the time counts
  for (const auto& side : sides_) {
    read_talk(*side);
    read_into(side->output, side->end.output);
    if (side->end.output.size() > kKeptOutput) side->end.output.erase(0, side->end.output.size() - kKeptOutput);
  }
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

bool Job::await_point(int rank, std::string_view point) {
  pump([&] { return side(rank).is_at(point) || !running(rank); }, kLongestNap);
  return side(rank).is_at(point);
}

void Job::await_point_of_all(std::string_view point) {
  for (int rank = 0; rank < spec_.ranks; ++rank) await_point(rank, point);
}

bool Job::await_stopped(int rank) {
  pump([&] { return side(rank).process->stopped() || !running(rank); }, kStopPoll);
  return side(rank).process->stopped();
}

bool Job::await_end(int rank) {
  pump([&] { return !running(rank); }, kLongestNap);
  return !running(rank);
}

bool Job::await_report(int rank) {
  pump([&] { return side(rank).end.report || !running(rank); }, kLongestNap);
  return side(rank).end.report.has_value();
}

void Job::await_reports_of_others(int rank) {
  for (int other = 0; other < spec_.ranks; ++other) {
    if (other != rank) await_report(other);
  }
}

void Job::pause(Duration length) {
  pump([] { return false; }, length, now() + std::chrono::duration<double>(length).count());
}

void Job::go_on(int rank) {
  // A rank that has ended cannot be told; its end says enough.
  (void)::send(side(rank).talk.get(), "g", 1, MSG_NOSIGNAL);
}

void Job::go_on_all() {
  for (int rank = 0; rank < spec_.ranks; ++rank) go_on(rank);
}

void Job::signal(int rank, int number) {
  side(rank).process->signal(number);
}

JobEnd Job::finish() {
  pump([this] { return all_ended(); }, kLongestNap);
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
                              .job_directory = directory_,
                              .scratch_directory = directory_ + "/tmp",
                              .shm_directory = spec_.shm != nullptr ? spec_.shm->path() : "/dev/shm",
                              .started = started_});
  for (const auto& side : sides_) end.ranks.push_back(std::move(side->end));
  clean_up();
  if (end.left_behind.empty() && std::filesystem::exists(directory_)) end.left_behind = directory_;
  return end;
}

void Job::clean_up() noexcept {
  sides_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace col::colcheck

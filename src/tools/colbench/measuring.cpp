#include "colbench/launching.hpp"

#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/machine/latency.hpp"
#include "colbench/machine/other_work.hpp"
#include "colbench/rank/lead.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/progress.hpp"
#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/small_file.hpp"
#include "launch/own_ranks.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/processes/signals.hpp"

extern char** environ;  // NOLINT: declared by no header

namespace col::colbench {
namespace {

namespace exit_code = tools::exit_code;

// ---- What a reader of a result must know about its origin -----------------------------------------------------------

constexpr const char* kOwnLauncher = "colbench";
constexpr double kMuchOtherWork = 0.05, kMuchStolen = 0.01;  // of all cores' time

std::string file_text(const char* path) {
  return launch::read_small_file(path).value_or("");
}

// Settings of the library and of what it uses; of COL_*, not where the job lives.
bool may_be_told(std::string_view name) {
  constexpr std::array kOthers = {"OMP_NUM_THREADS", "NCCL_ALGO", "NCCL_PROTO", "CUDA_VISIBLE_DEVICES"};
  constexpr std::array kSettings = {"COL_ALGORITHM",     "COL_SELECTION", "COL_NUMERICS", "COL_CHECK",
                                    "COL_PROGRESS",      "COL_TIMEOUT",   "COL_LOG",      "COL_FAULT",
                                    "COL_SOCKET_IFNAME", "COL_BACKEND"};
  const auto is = [&](const char* known) { return name == known; };
  return std::any_of(kOthers.begin(), kOthers.end(), is) || std::any_of(kSettings.begin(), kSettings.end(), is);
}

// Fills in what this host says about itself; what cannot be read stays empty. From the environment it takes only the
// names in a list, because the environment may hold secrets.
void describe_host(RunFacts& facts) {
  facts.host = launch::host_name();
  facts.cpu = launch::field(file_text("/proc/cpuinfo"), "model name");
  facts.cpus = launch::usable_cpus();
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  facts.governor = tools::trimmed(file_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  facts.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(core::wall_now()));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !may_be_told(text.substr(0, equals))) continue;
    facts.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(facts.environment.begin(), facts.environment.end());
}

// What the whole machine has done between two looks at it.
class HostWatch {
 public:
  HostWatch() : before_(host_times()) {}

  // One line for everything that may have spoiled the measurement: work of other processes, time stolen by a
  // hypervisor, more ranks than cores, a clock that changes its speed.
  std::vector<std::string> warnings(const RunFacts& facts) const {
    std::vector<std::string> warnings;
    if (facts.ranks > facts.cpus)
      warnings.push_back(fmt::format("{} ranks on {}: they take turns, and times are not those of {} cores",
                                     facts.ranks, tools::counted(static_cast<std::size_t>(facts.cpus), "core"),
                                     facts.ranks));
    if (facts.ranks == 1) warnings.push_back("one rank alone: nothing is communicated");
    const std::optional<HostTimes> now = host_times();
    if (before_ && now) {
      const OtherWork work = other_work(*before_, *now);
      if (work.stolen > kMuchStolen)
        warnings.push_back(fmt::format("the hypervisor took {:.0f} % of the cores' time away", 100 * work.stolen));
      // Under another launcher, the ranks are not children of a process here.
      if (facts.launcher == kOwnLauncher && work.processes > kMuchOtherWork)
        warnings.push_back(fmt::format("other processes used {:.0f} % of the cores", 100 * work.processes));
    }
    if (!facts.governor.empty() && facts.governor != "performance")
      warnings.push_back(fmt::format("the cores change their frequency (governor {})", facts.governor));
    return warnings;
  }

 private:
  std::optional<HostTimes> before_;
};

// ---- Launches -------------------------------------------------------------------------------------------------------

// A text that processes share, without a name and gone with the last of them. No process waits for another one to read
// or write it.
class MemoryFile {
 public:
  // `flags`: MFD_CLOEXEC, or 0 if programs that this process starts shall have it. Throws std::system_error.
  explicit MemoryFile(const char* name, unsigned flags) : file_(::memfd_create(name, flags)) {
    if (!file_) throw std::system_error(errno, std::generic_category(), "cannot make a file in memory");
  }
  explicit MemoryFile(int inherited) : file_(inherited) {}

  int fd() const { return file_.get(); }

  // Replaces the text. If there is no room, the reader sees that it is cut short.
  void write(std::string_view text) const {
    if (::ftruncate(fd(), 0) != 0) return;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t done = ::pwrite(fd(), text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return;
      at += static_cast<std::size_t>(done);
    }
  }

  std::string read() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd(), 0, SEEK_END))), '\0');
    const ssize_t size = ::pread(fd(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    return text;
  }

 private:
  tools::UniqueFd file_;
};

// Ranks wait for each other's next step; whatever is measured has a deadline of its own.
constexpr Duration kPatience = std::chrono::minutes(10);

constexpr std::chrono::milliseconds kLook{200};
constexpr int kManyRanks = 4;  // for each core

// Other work is looked at once for all measurements of a command.
struct Looked {
  std::optional<OtherWork> work = {};
  bool done = false;
};

// Says before it measures what will spoil it: other work, and many more ranks than cores.
void look_at_host(Looked& looked, const Method& method, int cpus, const tools::Screen& screen) {
  if (looked.done) return;
  looked.done = true;
  looked.work = other_work_now(&host_times, [] { core::sleep_for(kLook); });
  if (method.quiet) return;
  const auto say = [&](const std::string& what) {
    const std::string line = "colbench: " + what;
    const bool is_terminal = screen.progress_fd >= 0;
    print_error((is_terminal ? tools::wrapped(line, static_cast<std::size_t>(screen.columns), 0, 2) : line) + "\n");
  };
  const std::string warning = looked.work ? other_work_warning(*looked.work) : "";
  if (!warning.empty()) say(warning);
  if (method.ranks > kManyRanks * cpus)
    say(fmt::format("{} ranks on {} mostly wait for their turns; write -n {} for one on each", method.ranks,
                    tools::counted(static_cast<std::size_t>(cpus), "core"), std::max(2, cpus)));
}

// What all launches of a measurement find together.
Results measured(const Method& method, std::span<const CellSpec> cells, std::vector<std::string> command,
                 const std::string& launcher, const tools::Screen& screen, Looked& looked, const Launch& launch) {
  const std::int64_t begin = now_ns();
  Results all;
  describe_host(all.run);
  all.run.version = COL_TOOLS_VERSION;
  all.run.command = std::move(command);
  all.run.launcher = launcher;
  all.run.ranks = method.ranks;
  all.run.seed = method.seed;
  all.run.target_interval = method.target_interval;
  if (launcher == kOwnLauncher) look_at_host(looked, method, all.run.cpus, screen);
  if (looked.work) all.run.other_work = looked.work->all();
  const HostWatch watch;
  Progress progress(screen.progress_fd, screen.columns, screen.utf8);
  run_launches(all, method, cells, [&](Order order) {
    order.begun_ns = begin;
    progress.show({.launch = order.launch,
                   .launches = next_look(method, order.launch),
                   .activity = launcher == kOwnLauncher ? fmt::format("starting {} ranks", method.ranks) : ""});
    return launch(order);
  });
  all.run.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  for (const std::string& warning : watch.warnings(all.run)) all.warnings.push_back(warning);
  conclude(all, method);
  return all;
}

// Rank 0's part in one launch.
Results lead_launch(Player& player, const ContextSpec& spec, const Order& order, const tools::Screen& screen,
                    std::function<void(const Results&)> on_checkpoint) {
  Progress progress(screen.progress_fd, screen.columns, screen.utf8, &Progress::Clock::now,
                    std::chrono::nanoseconds(now_ns() - order.begun_ns));
  Advance advance{.launch = order.launch,
                  .launches = next_look(order.method, order.launch),
                  .activity = order.calibrations > 0 ? "measuring the machine" : "connecting the ranks"};
  Lead lead(player, spec,
            {.on_command = [&] { progress.show(advance); },
             .on_cell =
                 [&](std::size_t done, std::size_t total, const CellSpec& cell) {
                   advance.done = done;
                   advance.total = total;
                   advance.activity = activity_of(cell);
                 },
             .on_checkpoint = std::move(on_checkpoint)});
  return lead.run(order);
}

}  // namespace

Measure measure_in_own_ranks(const tools::Screen& screen, std::vector<std::string> command, std::span<char> title) {
  const auto looked = std::make_shared<Looked>();
  return [=](const Method& method, std::span<const CellSpec> cells) {
    int signal = 0;
    tools::Screen shown = screen;
    if (method.quiet) shown.progress_fd = -1;
    Results all = measured(method, cells, command, kOwnLauncher, shown, *looked, [&](const Order& asked) {
      const MemoryFile order("colbench-order", 0), found("colbench-results", 0);
      order.write(encode(asked));
      const launch::OwnResult ended =
          launch::run_own_ranks({.tool = "colbench",
                                 .arguments = {std::to_string(order.fd()), std::to_string(found.fd())},
                                 .ranks = method.ranks,
                                 .screen = shown,
                                 .keep_fds = {order.fd(), found.fd()},
                                 .title = title});
      Results one;
      try {
        const std::string text = found.read();
        if (!text.empty()) one = parse_json_results(text, "what the ranks have found");
      } catch (const tools::UsageError&) {  // rank 0 died while it wrote
        one.ended_early = "rank 0 died";
      }
      if (ended.exit_code != exit_code::kSuccess) one.exit_code = ended.exit_code;
      if (ended.exit_code == exit_code::kRankDied && one.ended_early.empty()) one.ended_early = "a rank died";
      if (ended.exit_code == exit_code::kLauncher && one.ended_early.empty())
        one.ended_early = "the ranks could not be started";
      if (ended.signal != 0) {
        signal = ended.signal;
        one.ended_early = "interrupted";
      }
      return one;
    });
    if (signal != 0) all.exit_code = exit_code::kSignalBase + signal;
    return all;
  };
}

int run_spawned_rank(const std::vector<std::string>& arguments) {
  const auto order_fd = arguments.size() == 3 ? tools::parse_whole_number<int>(arguments[1], 3, 1 << 20) : std::nullopt;
  const auto found_fd = arguments.size() == 3 ? tools::parse_whole_number<int>(arguments[2], 3, 1 << 20) : std::nullopt;
  if (!order_fd || !found_fd) throw tools::UsageError("--spawned is how colbench starts its own ranks; leave it out");
  const tools::Screen screen = tools::Screen::parse(arguments[0]);
  const MemoryFile order(*order_fd), found(*found_fd);
  register_idle_backend();
  Context& context = Context::current();
  const ContextSpec& spec = context.spec();
  try {
    Player player(context, kPatience);
    const Order work = decode_order(order.read());
    if (spec.rank != 0) {
      // Between two commands rank 0 thinks for a moment, and measures the machine's latencies.
      player.follow(work.method.timeout + std::chrono::seconds(10));
      finalize();
      return exit_code::kSuccess;
    }
    const auto keep = [&](const Results& results) { found.write(json_results(results)); };
    const Results results = lead_launch(player, spec, work, screen, keep);
    keep(results);
    player.ranks().dismiss();
    launch::leave_verdict(screen, results.exit_code);
    // What ended the run may hold the other ranks too: only a failure makes the launcher end them.
    // (Of a rank that died it knows.)
    if (!results.ended_early.empty() && results.exit_code != exit_code::kRankDied) return results.exit_code;
  } catch (const Error& error) {
    // Rank 0, or the launcher, says what happened.
    const bool known = error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted;
    if (spec.rank != 0 && known) return exit_code::kRankDied;
    throw;
  }
  finalize();
  return exit_code::kSuccess;
}

int measure_in_world(Context& context, const tools::Screen& screen, const std::vector<std::string>& command,
                     const std::function<int(const Measure&)>& work) {
  const ContextSpec& spec = context.spec();
  register_idle_backend();
  Player player(context, kPatience);
  if (spec.rank != 0) {
    player.follow(kPatience);  // rank 0 may be drawing
    return exit_code::kSuccess;
  }
  const tools::Dismissal dismissal{player.ranks()};
  return work([&](const Method& method, std::span<const CellSpec> cells) {
    if (method.ranks != spec.world_size)
      throw tools::UsageError("{} ranks are there, started by {}, not {}; leave -n out", spec.world_size, spec.launcher,
                              method.ranks);
    Method once = method;
    once.launches = 1;  // the ranks are not ours to start again
    tools::Screen shown = screen;
    if (method.quiet) shown.progress_fd = -1;
    Looked looked;
    return measured(once, cells, command, spec.launcher, shown, looked,
                    [&](const Order& order) { return lead_launch(player, spec, order, shown, {}); });
  });
}

}  // namespace col::colbench

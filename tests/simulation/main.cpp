// simulated_jobs: runs simulated jobs, a seed each, and says which break a promise.
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "simulation/job.hpp"
#include "simulation/plan.hpp"
#ifdef COL_SIMULATED_NODES
#include "simulation/nodes_job.hpp"
#endif

#ifdef COL_PLANTED_BUGS
namespace {
int planted_bug = 0;
}
namespace col::test {
// For the sources that plant_bugs.sh has written.
bool planted(int bug);
bool planted(int bug) {
  return bug == planted_bug;
}
}  // namespace col::test
#endif

// In a build that counts which lines are run, writes what has been counted: as exit() would.
extern "C" [[gnu::weak]] void __gcov_dump();

namespace {

[[noreturn]] void leave(int status) {
  if (__gcov_dump != nullptr) __gcov_dump();
  ::_exit(status);
}

using col::test::JobReport;
#ifdef COL_SIMULATED_NODES
constexpr auto* simulate = &col::test::simulate_nodes;
#else
constexpr auto* simulate = &col::test::simulate_job;
#endif
// With the version of what it is drawn for.
struct Seed {
  std::uint64_t number = 0;
  int draws = col::test::kDraws;
};
using Seeds = std::vector<Seed>;

// Threads of ranks that were killed stay: so many jobs in one process.
constexpr std::size_t kBatch = 250;
// In real time: a job that takes longer waits for something that is not simulated.
constexpr unsigned kMostSeconds = 120;

constexpr const char* kUsage =
    "usage: simulated_jobs, or simulated_nodes for launchers of several nodes, or simulated_bugs:\n"
    "  --seed N [--trace FILE]   one job, in this process: for a debugger\n"
    "  --seeds FROM COUNT        many, and what is wrong with any\n"
    "  --list FILE               those of a file: a number begins each line; 'draws N' is for those that follow\n"
    "  --draws N                 as seeds were drawn for version N; it stands before them\n"
    "  --hashes                  say the hash of each trace\n"
    "  --until-wrong             end with the first that is wrong\n"
    "  --bug N                   plant that bug of plant_bugs.sh (simulated_bugs)\n";

struct Options {
  Seeds seeds = {};
  bool is_one = false, shows_hashes = false, until_wrong = false;
  std::string trace = {}, bug = {};
};

std::string again;  // the command that repeats a seed, without it

std::string text_of(Seed seed) {
  return seed.draws == col::test::kDraws ? fmt::format("--seed {}", seed.number)
                                         : fmt::format("--draws {} --seed {}", seed.draws, seed.number);
}

void show(Seed seed, const JobReport& report) {
  fmt::print("seed {}: {}\n  {:.3f} s, {} turns, {} switches, trace {:016x}{}\n", seed.number, report.plan,
             static_cast<double>(report.simulated_ns) / 1e9, report.trace_lines, report.switches, report.trace_hash,
             report.had_errors ? ", with errors" : "");
  for (const std::string& problem : report.problems) fmt::print("  WRONG: {}\n", problem);
  if (!report.problems.empty()) fmt::print("  again: {} {} --trace FILE\n", again, text_of(seed));
  std::fflush(stdout);
}

// The threads hand over to one another: on one processor, that is cheapest.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Sockets of killed ranks stay.
void raise_limit_of_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct Counts {
  std::uint64_t jobs = 0, faults = 0, errors = 0, wrong = 0;
  void add(const Counts& other) {
    jobs += other.jobs;
    faults += other.faults;
    errors += other.errors;
    wrong += other.wrong;
  }
};

// In a child. Writes what it has counted to `out`.
[[noreturn]] void run_batch(std::span<const Seed> seeds, const Options& options, int out) {
  stay_on_one_processor();
  Counts counts;
  for (const Seed seed : seeds) {
    ::alarm(kMostSeconds);
    const JobReport report = simulate(seed.number, seed.draws, nullptr);
    counts.add({1, report.had_faults, report.had_errors, !report.problems.empty()});
    if (options.shows_hashes) fmt::print("hash {} {:016x}\n", seed.number, report.trace_hash);
    std::fflush(stdout);
    if (!report.problems.empty()) show(seed, report);
    if (::write(out, &counts, sizeof counts) != sizeof counts) leave(2);
    if (options.until_wrong && counts.wrong > 0) break;
  }
  leave(0);
}

// Returns what the batch has counted: if a job ends the process, up to that one.
Counts run_in_child(std::span<const Seed> seeds, const Options& options) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(2);
  const pid_t child = ::fork();
  if (child < 0) {
    fmt::print("no process can be started: {}\n", strerror(errno));
    std::exit(2);
  }
  if (child == 0) run_batch(seeds, options, ends[1]);
  ::close(ends[1]);
  Counts counts, read;
  while (::read(ends[0], &read, sizeof read) == sizeof read) counts = read;
  ::close(ends[0]);
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status == 0 && counts.jobs > 0) return counts;
  const Seed seed = seeds[std::min(counts.jobs, seeds.size() - 1)];
  fmt::print("seed {}: the process ended by {}\n  again: {} {} --trace FILE\n", seed.number,
             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "itself", again, text_of(seed));
  counts.add({1, 0, 0, 1});
  return counts;
}

int run_many(const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  Counts all;
  while (all.jobs < options.seeds.size() && !(options.until_wrong && all.wrong > 0)) {
    const auto left = std::span(options.seeds).subspan(all.jobs);
    all.add(run_in_child(left.first(std::min(kBatch, left.size())), options));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  fmt::print("{} jobs, {} with faults, {} with errors, {} wrong; {:.1f} s, {:.0f} a minute\n", all.jobs, all.faults,
             all.errors, all.wrong, seconds, 60 * static_cast<double>(all.jobs) / seconds);
  return all.wrong == 0 ? 0 : 1;
}

[[noreturn]] void run_one(const Options& options) {
  stay_on_one_processor();
  std::FILE* const trace = options.trace.empty() ? nullptr : std::fopen(options.trace.c_str(), "w");
  const JobReport report = simulate(options.seeds.front().number, options.seeds.front().draws, trace);
  show(options.seeds.front(), report);
  if (trace != nullptr) std::fclose(trace);
  leave(report.problems.empty() ? 0 : 1);
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 0);
}

// "draws N" is for what follows.
void read_list(const char* path, Options& options) {
  constexpr std::string_view kOfDraws = "draws ";
  int draws = col::test::kDraws;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kOfDraws))
      draws = static_cast<int>(number(line.c_str() + kOfDraws.size()));
    else if (!line.empty() && line.front() != '#')
      options.seeds.push_back({number(line.c_str()), draws});
  }
}

bool parse(int argc, char** argv, Options& options) {
  int draws = col::test::kDraws;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const int left = argc - i - 1;
    if (name == "--seed" && left >= 1) {
      options.is_one = true;
      options.seeds = {{number(argv[++i]), draws}};
    } else if (name == "--seeds" && left >= 2) {
      const std::uint64_t from = number(argv[++i]), count = number(argv[++i]);
      for (std::uint64_t seed = from; seed < from + count; ++seed) options.seeds.push_back({seed, draws});
    } else if (name == "--list" && left >= 1) {
      read_list(argv[++i], options);
    } else if (name == "--draws" && left >= 1) {
      draws = static_cast<int>(number(argv[++i]));
    } else if (name == "--trace" && left >= 1) {
      options.trace = argv[++i];
    } else if (name == "--hashes") {
      options.shows_hashes = true;
    } else if (name == "--until-wrong") {
      options.until_wrong = true;
#ifdef COL_PLANTED_BUGS
    } else if (name == "--bug" && left >= 1) {
      options.bug = argv[++i];
      planted_bug = std::atoi(options.bug.c_str());
#endif
    } else {
      return false;
    }
  }
  return !options.seeds.empty();
}

}  // namespace

int main(int argc, char** argv) {
  raise_limit_of_files();
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  again = options.bug.empty() ? argv[0] : fmt::format("{} --bug {}", argv[0], options.bug);
  if (options.is_one) run_one(options);
  return run_many(options);
}

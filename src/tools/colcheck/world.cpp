#include "colcheck/world.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colcheck/crash_note.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/progress.hpp"
#include "colcheck/report/html.hpp"
#include "colcheck/report/json.hpp"
#include "colcheck/report/junit.hpp"
#include "colcheck/report/matrix.hpp"
#include "colcheck/run.hpp"
#include "colcheck/selftest/lead.hpp"
#include "colcheck/selftest/planted_backend.hpp"
#include "common/exit_codes.hpp"
#include "common/write_file.hpp"

namespace col::colcheck {
namespace {

using Clock = std::chrono::steady_clock;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Results facts(const ContextSpec& spec, const Options& options, const std::string& command) {
  Results results;
  results.version = COL_TOOLS_VERSION;
  results.command = command;
  results.launcher = options.spawned.empty() ? spec.launcher : "colcheck";
  results.world_size = spec.world_size;
  results.host = host_name();
  results.cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  results.effort = options.repro                     ? "repro"
                   : options.soak > Duration::zero() ? "soak"
                   : options.effort == Effort::full  ? "full"
                                                     : "quick";
  results.seed = options.seed.value_or(fresh_seed());
  results.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return results;
}

// "colcheck 0.1.0: one world of 4 ranks, started by openmpi, on vm (2 CPUs); seed 0x1"
std::string opening_line(const Results& results) {
  const std::string world = results.world_size == 1 ? "1 rank" : fmt::format("{} ranks", results.world_size);
  const std::string origin = results.launcher == "colcheck" ? " of its own" : ", started by " + results.launcher;
  return fmt::format("colcheck {}: one world of {}{}, on {} ({} CPUs); {}, seed {:#x}", results.version, world, origin,
                     results.host, results.cpus, results.effort, results.seed);
}

void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

// False, and said, when one cannot be written.
bool write_reports(const Options& options, const Results& results) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader of a FIFO may leave; that is an error with a text
  bool good = true;
  const auto write = [&good](const std::string& path, std::string (*report)(const Results&), const Results& of) {
    if (path.empty()) return;
    try {
      tools::write_file(path, report(of));
    } catch (const tools::WriteError& error) {
      fmt::print(stderr, "colcheck: {}\n", error.what());
      good = false;
    }
  };
  write(options.junit, &junit_report, results);
  write(options.json, &json_report, results);
  write(options.html, &html_report, results);
  return good;
}

int lead_world(Context& context, tools::Coordinator& ranks, const Options& options, const tools::Screen& screen,
               const std::string& command) {
  const auto start = Clock::now();
  Results results = facts(context.spec(), options, command);
  Progress progress(options.progress ? screen.progress_fd : -1, screen.columns, screen.utf8);
  Lead lead(context, ranks, {.timeout = options.timeout, .on_case = [&](const Case& c) { progress.begin(c); }});
  say(opening_line(results));
  if (options.self_test) return run_self_test(lead, context.spec(), results.seed);
  RunListener listener{.on_planned = [&](std::size_t total) { progress.plan(total); },
                       .on_result =
                           [&](const CaseResult& result) {
                             progress.end(result);
                             if (!options.verbose) return;
                             progress.clear();
                             say(result_line(result, screen.utf8));
                           }};
  const int code = Run(lead, options, context.spec(), std::move(listener)).run(results);
  // When a rank has died, its launcher may end the others at any moment. The findings must be reported first.
  if (!results.ended_early.empty()) ::signal(SIGTERM, SIG_IGN);
  results.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  progress.clear();
  say(terminal_report(results, {.utf8 = screen.utf8, .colour = screen.colour}));
  const bool written = write_reports(options, results);
  return written || code != tools::exit_code::kSuccess ? code : tools::exit_code::kUsage;
}

}  // namespace

int run_world(Context& context, const Options& options, const tools::Screen& screen, const std::string& command) {
  const ContextSpec& spec = context.spec();
  install_crash_note(spec.rank);
  if (options.self_test || options.repro) register_planted_backends();
  const std::shared_ptr<Store> store = spec.store ? spec.store : make_memory_store();
  const std::unique_ptr<tools::Coordinator> ranks = tools::coordinator_over(*store, spec, "colcheck");
  if (spec.rank == 0) {
    const tools::Dismissal dismissal{*ranks};
    return lead_world(context, *ranks, options, screen, command);
  }
  try {
    obey(context, *ranks, {.timeout = options.timeout});
  } catch (const Error& error) {
    // The lead, or the launcher, says what happened.
    if (error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted) return tools::exit_code::kRankDied;
    throw;
  }
  return tools::exit_code::kSuccess;
}

}  // namespace col::colcheck

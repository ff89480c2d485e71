// colcheck: is every primitive right, here, on this machine?
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/job.hpp"
#include "colcheck/options.hpp"
#include "colcheck/progress.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/report/report.hpp"
#include "colcheck/run.hpp"
#include "colcheck/selftest/agreement.hpp"
#include "colcheck/selftest/self_test.hpp"
#include "common/gpu.hpp"
#include "common/guarded.hpp"
#include "common/screen.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/assignment.hpp"
#include "launch/own_ranks.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/signals.hpp"

namespace col::colcheck {
namespace {

// ---- Without another launcher: colcheck starts its own ranks

// Why a backend or device cannot be used; empty when it can.
std::string why_unavailable(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "cuda") return tools::why_no_gpus();
  if (tools::moves_device_memory(name)) return tools::why_no_nccl();
  BackendFactory* factory = find_backend(name);
  if (factory == nullptr) return "this build has no such backend";
  return factory->unavailable_reason().value_or("");
}

int ranks_needed(const Options& options) {
  if (options.repro) {
    const Property* property = find_property(options.repro->property);
    return property != nullptr && property->kind == Property::Kind::group ? options.repro->ranks : 1;
  }
  if (options.self_test) return kSelfTestRanks;
  // Drills start ranks of their own, and what needs no group is quicker with a few.
  const auto chosen = chosen_properties(options);
  const bool grouped =
      std::any_of(chosen.begin(), chosen.end(), [](const Property* p) { return p->kind == Property::Kind::group; });
  if (!grouped && !options.ranks) return options.faults ? 1 : 2;
  return options.ranks.value_or(default_ranks(options)).back();
}

// Finds what cannot be done before any rank starts. Throws UsageError if something that was required is missing.
void check_requirements(const Options& options) {
  for (const std::string& name : options.require) {
    if (const std::string why = why_unavailable(name); !why.empty())
      throw UsageError("'{}' is required, and cannot be used here: {}", name, why);
  }
}

// Starts as many ranks of this program as `options` need, with these arguments, and waits for them. Returns the exit
// code. `title` is the memory of argv (JobSpec::title). Requires: the caller has one thread.
int drive(const Options& options, const std::vector<std::string>& arguments, std::span<char> title) {
  tools::Screen screen = tools::Screen::own();
  if (!options.progress) screen.progress_fd = -1;
  const launch::OwnResult result = launch::run_own_ranks(
      {.tool = "colcheck", .arguments = arguments, .ranks = ranks_needed(options), .screen = screen, .title = title});
  if (result.signal != 0) launch::die_of(result.signal);
  return result.exit_code;
}

// ---- Inside a world of ranks: what its lead, rank 0, and the others do

Results facts(const ContextSpec& spec, const Options& options, const std::string& command) {
  Results results;
  results.version = COL_TOOLS_VERSION;
  results.command = command;
  results.launcher = options.spawned.empty() ? spec.launcher : "colcheck";
  results.world_size = spec.world_size;
  results.host = launch::host_name();
  results.cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  results.effort = options.repro                     ? "repro"
                   : options.soak > Duration::zero() ? "soak"
                   : options.effort == Effort::full  ? "full"
                                                     : "quick";
  results.seed = options.seed.value_or(fresh_seed());
  results.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(core::wall_now()));
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
  tools::print(text + "\n");
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

// Prints how the arithmetic agrees with the definitions, and which property catches which bug. Returns the exit code: 0
// if all is as it should be: each bug is caught and the control is not.
// Requires: register_planted_backends() on all ranks, and at least kSelfTestRanks of them; otherwise UsageError.
int run_self_test(Lead& lead, const ContextSpec& spec, std::uint64_t seed) {
  if (spec.world_size < kSelfTestRanks)
    throw UsageError("--self-test needs {} ranks, and this world has {}", kSelfTestRanks, spec.world_size);
  const AgreementReport arithmetic = compare_all();
  say(arithmetic.text);
  std::vector<HuntResult> catches;
  try {
    for (const PlantedBug& bug : planted_bugs()) {
      Hunt hunt(bug, seed);
      for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) hunt.add(lead.run(cases));
      catches.push_back(hunt.result());
    }
  } catch (const RunEnded& ended) {
    say(fmt::format("{}colcheck: the self-test ended early: {}", table_of(catches), ended.why));
    return ended.exit_code;
  }
  say(table_of(catches));
  return arithmetic.is_good && all_good(catches) ? tools::exit_code::kSuccess : tools::exit_code::kWrongData;
}

int lead_world(Context& context, tools::Coordinator& ranks, const Options& options, const tools::Screen& screen,
               const std::string& command) {
  const auto start = core::Clock::now();
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
  results.seconds = std::chrono::duration<double>(core::Clock::now() - start).count();
  progress.clear();
  try {
    say(terminal_report(results, screen.style()));
  } catch (const tools::OutputClosed&) {
    write_reports(options, results);  // what cannot be printed takes no file with it
    throw;
  }
  const bool written = write_reports(options, results);
  return written || code != tools::exit_code::kSuccess ? code : tools::exit_code::kUsage;
}

// Runs what `options` ask for in the world that `context` is in, and returns the exit code: on the lead the verdict, on
// the others 0, since one word is enough for a launcher. `command` is for reports.
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

// ---- The program

// Whether nothing can be checked where there is no GPU.
bool is_about_gpus(const Options& options) {
  if (options.repro) return needs_gpu(options.repro->devices, options.repro->backend);
  return options.device == Options::Device::cuda;
}

int run(const std::vector<std::string>& arguments, std::span<char> title) {
  if (arguments.size() == 2 && arguments[0] == "--fault-rank") return fault_rank_main(arguments[1]);
  const Request request = parse_command_line(arguments);
  // Before closed descriptors are replaced: a text that nobody gets is an error.
  if (const auto* text = std::get_if<std::string>(&request)) {
    tools::print(*text);
    return tools::exit_code::kSuccess;
  }
  launch::ensure_standard_descriptors();
  const Options& options = std::get<Options>(request);
  start_ranks_by(options.fault_start);
  // A rank of a job, whatever started it, or not a rank.
  const bool spawned = !options.spawned.empty();
  if (!spawned) {
    check_report_paths(options);
    check_requirements(options);
    if (const std::string why = is_about_gpus(options) ? tools::why_no_gpus() : ""; !why.empty())
      throw tools::ToolError(tools::exit_code::kSkipped,
                             "skipped: no CUDA device can be checked: {}; leave --device out to check the rest", why);
  }
  ::unsetenv("COL_ERROR_FILE");  // a launcher would report the last error that a case provoked as the cause of the end
  Context& context = Context::current();
  if (!spawned && context.spec().launcher.empty()) return drive(options, arguments, title);
  const tools::Screen screen = spawned ? tools::Screen::parse(options.spawned) : tools::Screen::own();
  int code = tools::exit_code::kUsage;
  try {
    // As the user wrote it, who knows nothing of --spawned.
    std::vector<std::string> words(arguments.begin() + (spawned ? 2 : 0), arguments.end());
    words.insert(words.begin(), "colcheck");
    code = run_world(context, options, screen, tools::shell_line(words));
  } catch (const UsageError& error) {  // what could only be known in the world
    std::fprintf(stderr, "%s\n", tools::usage_line("colcheck", error.what()).c_str());
  } catch (const tools::OutputClosed& error) {
    std::fprintf(stderr, "colcheck: %s\n", error.what());
    code = error.exit_code(code);
  }
  const int rank = context.spec().rank;
  col::finalize();
  return rank == 0 && launch::leave_verdict(screen, code) ? tools::exit_code::kSuccess : code;
}

}  // namespace
}  // namespace col::colcheck

int main(int argc, char** argv) {
  using namespace col;
  namespace exit_code = tools::exit_code;
  if (argc < 1) return exit_code::kUsage;
  const std::span<char> title(argv[0], argv[argc - 1] + std::strlen(argv[argc - 1]) + 1);
  return tools::guarded({.tool = "colcheck", .failure = exit_code::kRankDied, .has_ranks = true}, [&] {
    return colcheck::run({argv + 1, argv + argc}, title);
  });
}

// colbench: how fast is every primitive here, and how far from what is possible?
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <col/group.hpp>
#include <col/select.hpp>

#include "colbench/command.hpp"
#include "colbench/commands/print.hpp"
#include "colbench/measuring.hpp"
#include "colbench/options.hpp"
#include "colbench/selftest/idle_backend.hpp"
#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/write_file.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/processes/signals.hpp"

namespace {

using namespace col::colbench;
namespace exit_code = col::tools::exit_code;

struct Named {
  std::string_view name;
  int (*run)(const Invocation&);
  bool measures;  // needs ranks
};
constexpr std::array kCommands = {Named{"compare", &run_compare, false},
                                  Named{"noise", &run_noise, true},
                                  Named{"algorithms", &run_algorithms, true},
                                  Named{"tune", &run_tune, true},
                                  Named{"explain", &run_explain, false},
                                  Named{"simulate", &run_simulate, false},
                                  Named{"draw", &run_draw, false},
                                  Named{"pairs", &run_pairs, true},
                                  Named{"bisect", &run_bisect, true},
                                  Named{"suite", &run_suite, true},
                                  Named{"self-test", &run_self_test, true}};
constexpr Named kMeasure = {"", &run_measure, true};

const Named& command_of(std::vector<std::string>& arguments) {
  if (arguments.empty()) return kMeasure;
  for (const Named& command : kCommands) {
    if (arguments.front() != command.name) continue;
    arguments.erase(arguments.begin());
    return command;
  }
  return kMeasure;
}

// What `work` throws is said in one line, and becomes an exit code.
template <class Work>
int guarded(Work work) {
  const auto say = [](std::string_view text) { print_error(fmt::format("colbench: {}\n", text)); };
  try {
    return work();
  } catch (const col::tools::UsageError& error) {
    const std::string_view text = error.what();
    say(fmt::format("{}{} see colbench --help", text, text.ends_with('?') ? "" : ";"));
    return exit_code::kUsage;
  } catch (const Unavailable& why) {
    say(fmt::format("skipped: {}", why.what()));
    return exit_code::kSkipped;
  } catch (const OutputClosed& error) {
    say(error.what());
    return exit_code::kOutputClosed;
  } catch (const col::tools::WriteError& error) {
    say(error.what());
    return exit_code::kUsage;
  } catch (const col::Error& error) {  // the environment contradicts itself, or the ranks do not meet
    say(error.what());
    const bool asked_wrongly = error.code() == col::ErrorCode::invalid_argument ||
                               error.code() == col::ErrorCode::io;  // a file that the environment names
    return asked_wrongly                             ? exit_code::kUsage
           : error.code() == col::ErrorCode::timeout ? exit_code::kRankTimeout
                                                     : exit_code::kRankDied;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_code::kRankDied;
  }
}

int run(std::vector<std::string> arguments, std::span<char> title) {
  if (!arguments.empty() && arguments.front() == "--spawned")
    return run_spawned_rank({arguments.begin() + 1, arguments.end()});
  std::vector<std::string> line = {"colbench"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  const Named& command = command_of(arguments);
  Invocation invocation{.arguments = std::move(arguments), .screen = col::tools::Screen::own(), .measure = {}};
  const auto& options = invocation.arguments;
  if (std::find(options.begin(), options.end(), "--no-progress") != options.end()) invocation.screen.progress_fd = -1;
  if (!command.measures) return command.run(invocation);

  col::Context& context = col::Context::current();
  if (context.spec().launcher.empty()) {
    invocation.measure = measure_in_own_ranks(invocation.screen, line, title);
    return command.run(invocation);
  }
  const int code = measure_in_world(context, invocation.screen, line, [&](const Measure& measure) {
    invocation.measure = measure;
    return guarded([&] { return command.run(invocation); });
  });
  col::finalize();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 1) return exit_code::kUsage;
  col::launch::ensure_standard_descriptors();
  const std::span<char> title = {argv[0], argv[argc - 1] + std::strlen(argv[argc - 1]) + 1};
  const int code = guarded([&] { return run({argv + 1, argv + argc}, title); });
  // Interrupted: what was found by then has been written.
  if (code > exit_code::kSignalBase && code != exit_code::kOutputClosed)
    col::launch::die_of(code - exit_code::kSignalBase);
  return code;
}

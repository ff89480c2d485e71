// colbench: how fast is every primitive here, and how far from what is possible?
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <col/group.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/launching.hpp"
#include "common/command_line.hpp"
#include "common/gone.hpp"
#include "common/guarded.hpp"
#include "common/write_file.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/signals.hpp"

namespace {

using namespace col::colbench;
namespace exit_code = col::tools::exit_code;

constexpr const char* kUsage = "Usage: colbench COLL[,COLL]|all|sendrecv [options]\n       colbench COMMAND [options]";
constexpr const char* kBrief =
    "Commands: compare, noise, algorithms, tune, explain, simulate, draw, pairs, nodes, self-test; "
    "colbench help COMMAND tells of each. Example: colbench allreduce --size 32M.";
constexpr const char* kFooter =
    R"(Collectives: allreduce reduce broadcast allgather(v) reduce_scatter(v) gather(v) scatter(v) alltoall(v) scan exscan
barrier; messages: pingpong oneway bidirectional (sendrecv is all three).

Commands: compare A.json B.json, noise, algorithms, tune, explain, simulate, draw, pairs, nodes, self-test;
colbench help COMMAND tells of each.

Examples:
  colbench allreduce --size 32M        how fast, and how far from the limit?
  colbench all --sizes 8:16M:x8 -n 4 --html report.html
  colbench allreduce --sizes 1K:64M:x4 --algo ring,bde,auto --plot curves.svg
  colbench allreduce -b 8 -e 128M -f 2 as nccl-tests; its -d and -o, too
  colbench sendrecv --device cuda      between GPUs, and them and the host
  mpirun -n 4 colbench allreduce       in the ranks that are there already

Times are the host's, from a call until its result is there. On GPUs, tdev is the device's own: between two events
around the call in its stream; a dash for messages, barriers, and what goes through the host.

Exit code: 0 measured; 1 wrong data; 2 usage, or an output that cannot be written; 3 time is up; 4 slower than allowed
(compare), or an odd node (nodes); 5 a rank died; 6 a time below the physical bound; 77 nothing could be measured here.)";

constexpr std::size_t kMostWords = 16;

// Sizes are an option, and collectives are one word.
void refuse_more_words(const std::vector<std::string>& words) {
  if (words.size() < 2) return;
  if (words[1].find_first_of("0123456789") == 0)
    throw UsageError("unexpected argument '{0}'; for a size write --size {0}", words[1]);
  throw UsageError("unexpected argument '{}'; for several collectives write {}", words[1], fmt::join(words, ","));
}

// colbench COLL …
int run_measure(const Invocation& invocation) {
  CommandLine line("colbench", kUsage, kFooter, kBrief);
  line.add_cells();
  line.add_method();
  line.add_outputs();
  std::vector<std::string_view> words = operation_words();
  words.insert(words.end(), kCommandNames.begin(), kCommandNames.end());
  line.offer(invocation.arguments.size() > 1 ? std::vector<std::string_view>() : words);
  if (!line.parse(invocation.arguments, kMostWords)) return exit_code::kSuccess;
  Request& request = line.request();
  if (line.words().empty()) throw UsageError("what shall be measured? colbench allreduce, or colbench all");
  refuse_more_words(line.words());
  request.operations = parse_operations(line.words().front());
  if (request.sizes.empty()) request.sizes = {std::size_t{32} << 20};
  const std::vector<CellSpec> cells = cells_of(request);
  check_outputs(request.output);
  if (const std::string note = rounding_note(request); !note.empty() && !request.method.quiet)
    print_error(fmt::format("colbench: {}\n", note));
  if (request.device == col::Device::Type::cpu) request.method.fits = request.backends;
  const Results results = invocation.measure(request.method, cells);
  // Nothing could be done as it was asked for: the reasons are all there is to say.
  if (results.exit_code == exit_code::kUsage && results.ended_early.empty()) {
    std::set<std::string> notes;
    for (const Cell& cell : results.cells) notes.insert(cell.note);
    throw UsageError("{}", fmt::join(notes, "; "));
  }
  return report(results, request.output, invocation.screen);
}

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
                                  Named{"nodes", &run_nodes, false},  // in ranks that are there
                                  Named{"self-test", &run_self_test, true}};
constexpr Named kMeasure = {"", &run_measure, true};

// `help WORDS` becomes `WORDS --help`.
void ask_for_help(std::vector<std::string>& arguments) {
  arguments.erase(arguments.begin());
  const bool asks = arguments.empty() || arguments.front().starts_with('-') ||
                    std::ranges::find(kCommands, arguments.front(), &Named::name) != kCommands.end();
  if (!asks) parse_operations(arguments.front());  // which knows the nearest name of all
  if (arguments.empty() || arguments.back() != col::tools::kListOptions) arguments.emplace_back("--help");
}

const Named& command_of(std::vector<std::string>& arguments) {
  if (arguments.empty()) return kMeasure;
  if (const std::string gone = col::tools::gone_text("colbench", arguments.front()); !gone.empty())
    throw UsageError(gone);
  for (const Named& command : kCommands) {
    if (arguments.front() != command.name) continue;
    arguments.erase(arguments.begin());
    return command;
  }
  return kMeasure;
}

int guarded(const std::function<int()>& work) {
  return col::tools::guarded({.tool = "colbench", .failure = exit_code::kRankDied, .has_ranks = true}, work);
}

int run(std::vector<std::string> arguments, std::span<char> title) {
  if (!arguments.empty() && arguments.front() == "--spawned")
    return run_spawned_rank({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments.front() == "help") ask_for_help(arguments);
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

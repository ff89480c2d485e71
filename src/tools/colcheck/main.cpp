// colcheck: is every primitive right, here, on this machine?
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/group.hpp>

#include "colcheck/driver.hpp"
#include "colcheck/faults/rank_main.hpp"
#include "colcheck/options.hpp"
#include "colcheck/world.hpp"
#include "common/exit_codes.hpp"
#include "common/gpu.hpp"
#include "launch/own_ranks.hpp"

namespace {

using namespace col::colcheck;
namespace exit_code = col::tools::exit_code;

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return exit_code::kSuccess;
  std::fprintf(stderr, "colcheck: cannot write to stdout: %s\n", std::strerror(errno));
  return exit_code::kOutputClosed;
}

// Whether nothing can be checked where there is no GPU.
bool is_about_gpus(const Options& options) {
  if (options.repro) return needs_gpu(options.repro->devices, options.repro->backend);
  return options.device == Options::Device::cuda;
}

int run(const std::vector<std::string>& arguments, std::span<char> title) {
  if (arguments.size() == 2 && arguments[0] == "--fault-rank") return fault_rank_main(arguments[1]);
  const Request request = parse_command_line(arguments);
  if (const auto* text = std::get_if<std::string>(&request)) return print(*text);
  const Options& options = std::get<Options>(request);
  // A rank of a job, whatever started it, or not a rank.
  const bool spawned = !options.spawned.empty();
  if (!spawned) {
    check_report_paths(options);
    check_requirements(options);
    if (is_about_gpus(options)) {
      const std::string why = col::tools::why_no_gpus();
      if (!why.empty()) {
        std::fprintf(stderr, "colcheck: skipped: no CUDA device can be checked: %s\n", why.c_str());
        return exit_code::kSkipped;
      }
    }
  }
  col::Context& context = col::Context::current();
  if (!spawned && context.spec().launcher.empty()) return drive(options, arguments, title);
  const col::tools::Screen screen = spawned ? col::tools::Screen::parse(options.spawned) : col::tools::Screen::own();
  int code = exit_code::kUsage;
  try {
    code = run_world(context, options, screen, fmt::format("colcheck {}", fmt::join(arguments, " ")));
  } catch (const UsageError& error) {  // what could only be known in the world
    std::fprintf(stderr, "colcheck: %s; see colcheck --help\n", error.what());
  }
  const int rank = context.spec().rank;
  col::finalize();
  return rank == 0 && col::launch::leave_verdict(screen, code) ? exit_code::kSuccess : code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 1) return exit_code::kUsage;
  try {
    return run({argv + 1, argv + argc}, {argv[0], argv[argc - 1] + std::strlen(argv[argc - 1]) + 1});
  } catch (const UsageError& error) {
    std::fprintf(stderr, "colcheck: %s; see colcheck --help\n", error.what());
    return exit_code::kUsage;
  } catch (const col::Error& error) {  // the environment contradicts itself, or the ranks do not meet
    std::fprintf(stderr, "colcheck: %s\n", error.what());
    return error.code() == col::ErrorCode::invalid_argument ? exit_code::kUsage
           : error.code() == col::ErrorCode::timeout        ? exit_code::kRankTimeout
                                                            : exit_code::kRankDied;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "colcheck: %s\n", error.what());
    return exit_code::kRankDied;
  }
}

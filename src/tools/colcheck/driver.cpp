#include "colcheck/driver.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "colcheck/selftest/self_test.hpp"
#include "colcheck/world.hpp"
#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "launch/launch.hpp"
#include "launch/signals.hpp"

namespace col::colcheck {
namespace {

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0) throw std::system_error(errno, std::generic_category(), "cannot find the path of colcheck itself");
  return {path.data(), static_cast<std::size_t>(length)};
}

// Why a backend or device cannot be used; empty when it can.
std::string why_unavailable(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "cuda" || name == "nccl") return nccl_unavailable_reason();
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
  return options.ranks.value_or(default_ranks(options.effort)).back();
}

// What the lead found; nothing when it did not come to that.
std::optional<int> verdict_from(int fd) {
  unsigned char code = 0;
  if (::read(fd, &code, 1) != 1) return std::nullopt;
  return code;
}

int exit_code_of(const launch::JobResult& result, int verdict_fd) {
  namespace exit_code = tools::exit_code;
  if (!result.error.empty()) std::fprintf(stderr, "colcheck: %s\n", result.error.c_str());
  if (result.signal != 0) launch::die_of(result.signal);
  const std::optional<int> verdict = verdict_from(verdict_fd);
  if (result.exit_code == exit_code::kSuccess) return verdict.value_or(exit_code::kRankDied);
  return result.exit_code > exit_code::kSignalBase ? exit_code::kRankDied : result.exit_code;
}

// The ranks inherit the end that is written to.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  tools::UniqueFd out, in;
};

}  // namespace

void check_requirements(const Options& options) {
  for (const std::string& name : options.require) {
    if (const std::string why = why_unavailable(name); !why.empty())
      throw UsageError(fmt::format("'{}' is required, and cannot be used here: {}", name, why));
  }
}

int drive(const Options& options, const std::vector<std::string>& arguments, std::span<char> title) {
  ::setenv("OMP_NUM_THREADS", "1", 0);  // no word about it: no rank computes
  Screen screen = Screen::own();
  // The ranks' own standard streams go through the launcher, which passes on whole lines.
  tools::UniqueFd terminal;
  launch::JobSpec spec;
  if (screen.progress_fd >= 0 && options.progress) {
    terminal.reset(::fcntl(screen.progress_fd, F_DUPFD, STDERR_FILENO + 1));
    screen.progress_fd = terminal.get();
    if (terminal) spec.keep_fds.push_back(terminal.get());
  } else {
    screen.progress_fd = -1;
  }
  const Pipe verdict;
  screen.verdict_fd = verdict.in.get();
  spec.keep_fds.push_back(verdict.in.get());
  std::sort(spec.keep_fds.begin(), spec.keep_fds.end());
  spec.command = {own_path(), "--spawned", screen.text()};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.ranks = ranks_needed(options);
  spec.tool = "colcheck";
  spec.stdin_fd = -1;
  spec.title = title;
  return exit_code_of(launch::run(spec), verdict.out.get());
}

}  // namespace col::colcheck

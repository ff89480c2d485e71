#include "colcheck/driver.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "colcheck/selftest/self_test.hpp"
#include "common/gpu.hpp"
#include "launch/own_ranks.hpp"
#include "launch/processes/signals.hpp"

namespace col::colcheck {
namespace {

// Why a backend or device cannot be used; empty when it can.
std::string why_unavailable(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "cuda") return tools::why_no_gpus();
  if (name == "nccl") return tools::why_no_nccl();
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

}  // namespace

void check_requirements(const Options& options) {
  for (const std::string& name : options.require) {
    if (const std::string why = why_unavailable(name); !why.empty())
      throw UsageError(fmt::format("'{}' is required, and cannot be used here: {}", name, why));
  }
}

int drive(const Options& options, const std::vector<std::string>& arguments, std::span<char> title) {
  tools::Screen screen = tools::Screen::own();
  if (!options.progress) screen.progress_fd = -1;
  const launch::OwnResult result = launch::run_own_ranks(
      {.tool = "colcheck", .arguments = arguments, .ranks = ranks_needed(options), .screen = screen, .title = title});
  if (result.signal != 0) launch::die_of(result.signal);
  return result.exit_code;
}

}  // namespace col::colcheck

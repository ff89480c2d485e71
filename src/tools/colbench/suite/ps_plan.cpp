#include "colbench/suite/ps_plan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "common/option_values.hpp"

namespace col::colbench {
namespace {

constexpr std::array kMethods = {
    PsMethod{"store (emulated)", Operation::store, "auto", "auto", false},
    PsMethod{"central server", Operation::allreduce, "shm", "ps_central"},
    PsMethod{"sharded server", Operation::allreduce, "shm", "ps_sharded"},
    PsMethod{"col over shm", Operation::allreduce, "shm", "auto", false},
    PsMethod{"col over gloo", Operation::allreduce, "gloo", "auto"},
};
static_assert(kMethods[kReferenceMethod].backend == "shm" && kMethods[kReferenceMethod].algorithm == "auto");

}  // namespace

std::span<const PsMethod> ps_methods() {
  return kMethods;
}

const PsMethod* ps_method_of(const CellSpec& spec) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&spec](const PsMethod& method) {
    return spec.operation == method.operation && spec.backend == method.backend && spec.algorithm == method.algorithm;
  });
  return found == kMethods.end() ? nullptr : &*found;
}

std::vector<CellSpec> ps_cells(int ranks, std::span<const std::size_t> sizes, bool gloo) {
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : sizes) {
    for (const PsMethod& method : kMethods) {
      if ((ranks == 1 && method.needs_peers) || (!gloo && method.backend == "gloo")) continue;
      CellSpec spec{.operation = method.operation,
                    .backend = std::string(method.backend),
                    .algorithm = std::string(method.algorithm),
                    .ranks = ranks};
      spec.bytes = std::max<std::size_t>(1, bytes / size_of(spec.dtype)) * size_of(spec.dtype);
      if (std::find(cells.begin(), cells.end(), spec) == cells.end()) cells.push_back(std::move(spec));
    }
  }
  return cells;
}

std::size_t memory_of(const CellSpec& spec) {
  const auto ranks = static_cast<std::size_t>(spec.ranks);
  // The store: input, output and a message on each rank, an object of each, and the sum.
  if (spec.operation == Operation::store) return (4 * ranks + 1) * spec.bytes;
  return 2 * ranks * spec.bytes;
}

std::vector<int> take_rank_list(std::vector<std::string>& arguments, std::vector<int> fallback) {
  std::vector<std::string> left, given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    if (name != "-n" && name != "--ranks") {
      left.push_back(argument);
    } else if (equals < argument.size()) {
      given.push_back(argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      given.push_back(arguments[++i]);
    } else {
      throw tools::UsageError(fmt::format("{} needs a value", name));
    }
  }
  arguments = std::move(left);
  if (given.empty()) return fallback;
  if (given.size() > 1) throw tools::UsageError("-n was given twice; give it once");
  const auto ranks = tools::parse_ranks(given.front());
  if (!ranks) {
    throw tools::UsageError(fmt::format("-n takes numbers of ranks from 1 to {}, as 1,2,4 or 1-4, not '{}'",
                                        tools::kMaxRanks, given.front()));
  }
  return *ranks;
}

}  // namespace col::colbench

#include "colbench/plans/plan_source.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/commands/options.hpp"
#include "common/numbers.hpp"

namespace col::colbench {
namespace {

constexpr std::string_view kAll = "all";

AlgorithmSpec parse_spec(const std::string& text) {
  try {
    return AlgorithmSpec::parse(text);
  } catch (const Error& error) {
    throw UsageError(error.message());
  }
}

[[noreturn]] void refuse_name(Collective collective, const std::string& name) {
  std::vector<std::string_view> names = names_of(collective);
  const std::string_view nearest = nearest_name(name, names);
  throw UsageError("{} has no algorithm '{}'{}", col::to_string(collective), name,
                   nearest.empty() ? fmt::format("; choose from {}", fmt::join(names, ", "))
                                   : fmt::format("; did you mean '{}'?", nearest));
}

}  // namespace

std::vector<std::string_view> names_of(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) names.push_back(algorithm.name);
  }
  return names;
}

Collective parse_collective(const std::string& text) {
  const std::vector<Operation> operations = parse_operations(text);
  if (operations.size() != 1) throw UsageError("one collective at a time, not '{}'", text);
  const auto collective = collective_of(operations.front());
  if (!collective) throw UsageError("{} has no plan; name a collective such as allreduce", text);
  return *collective;
}

void CellOptions::define(CommandLine& line) {
  line.add_option("What", "--dtype", dtype, "DTYPE", "default: float32");
  line.add_option("What", "--op", op, "OP", "default: sum");
  line.add_option("What", "--root", root, "R", "default: 0");
}

void CellOptions::apply(CellSpec& cell) const {
  try {
    cell.dtype = dtype_from_string(dtype);
    cell.op = reduce_op_from_string(op);
  } catch (const Error& error) {
    throw UsageError(error.message());
  }
  const auto rank = tools::parse_whole_number(root, 0, cell.ranks - 1);
  if (!rank) throw UsageError("--root should be a rank, 0 to {}, not '{}'", cell.ranks - 1, root);
  cell.root = *rank;
}

PlanSource PlanSource::find(Collective collective, const std::string& text) {
  PlanSource source;
  source.spec_ = parse_spec(text);
  source.name_ = source.spec_.text();
  if (!source.spec_.file.empty()) {
    source.file_ = PlanFile::load(source.spec_.file);
    return source;
  }
  source.algorithm_ = find_algorithm(collective, source.spec_.name);
  if (source.algorithm_ == nullptr) refuse_name(collective, source.spec_.name);
  const std::string_view parameters = source.algorithm_->parameters;
  if (source.spec_.radix != 0 && parameters.find("radix") == std::string_view::npos)
    throw UsageError("{} has no parameter 'radix'", source.spec_.name);
  if (source.spec_.segment_bytes != 0 && parameters.find("segment") == std::string_view::npos)
    throw UsageError("{} has no parameter 'segment'", source.spec_.name);
  return source;
}

std::vector<PlanSource> PlanSource::list(Collective collective, const std::vector<std::string>& texts) {
  std::vector<PlanSource> sources;
  const auto add = [&](PlanSource source) {
    const auto same = [&](const PlanSource& other) { return other.name() == source.name(); };
    if (std::none_of(sources.begin(), sources.end(), same)) sources.push_back(std::move(source));
  };
  for (const std::string& text : texts) {
    if (text != kAll) {
      add(find(collective, text));
      continue;
    }
    for (const std::string_view name : names_of(collective)) add(find(collective, std::string(name)));
  }
  return sources;
}

std::optional<std::string> PlanSource::refuse(const PlanProblem& problem) const {
  return algorithm_ != nullptr ? algorithm_->refuse(problem.request(0)) : file_->refuse(problem.request(0));
}

PlanOfRank PlanSource::plans(const PlanProblem& problem) const {
  if (algorithm_ != nullptr) return plans_of(*algorithm_, problem);
  return [this, &problem](int rank) { return file_->build(problem.request(rank)); };
}

}  // namespace col::colbench

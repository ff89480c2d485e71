#include "colbench/commands/plan_source.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/options.hpp"

namespace col::colbench {
namespace {

constexpr std::string_view kAll = "all";

// Minimum and maximum of 16-bit floats are exact in 16 bits.
bool widens(const CellSpec& cell) {
  const bool is_half = cell.dtype == DType::float16 || cell.dtype == DType::bfloat16;
  return is_half && is_reduction(cell.operation) && cell.op != ReduceOp::min && cell.op != ReduceOp::max;
}

std::vector<std::string_view> names_of(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) names.push_back(algorithm.name);
  }
  return names;
}

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
  throw UsageError(fmt::format("{} has no algorithm '{}'{}", col::to_string(collective), name,
                               nearest.empty() ? fmt::format("; choose from {}", fmt::join(names, ", "))
                                               : fmt::format("; did you mean '{}'?", nearest)));
}

}  // namespace

Collective parse_collective(const std::string& text) {
  const std::vector<Operation> operations = parse_operations(text);
  if (operations.size() != 1) throw UsageError(fmt::format("one collective at a time, not '{}'", text));
  const auto collective = collective_of(operations.front());
  if (!collective) throw UsageError(fmt::format("{} has no plan; name a collective such as allreduce", text));
  return *collective;
}

PlanProblem::Spec problem_of(const CellSpec& cell, const AlgorithmSpec& algorithm) {
  const Collective collective = collective_of(cell.operation).value();
  PlanProblem::Spec spec{.collective = collective, .size = cell.ranks};
  spec.root = is_rooted(cell.operation) ? std::max(cell.root, 0) : 0;
  spec.widens = widens(cell);
  spec.in_place = cell.in_place;
  spec.parameters.radix = algorithm.radix;
  if (algorithm.segment_bytes > 0)
    spec.parameters.segment = std::max<std::size_t>(1, algorithm.segment_bytes / size_of(cell.dtype));
  const std::size_t count = block_count(cell, cell.ranks);
  const auto ranks = static_cast<std::size_t>(cell.ranks);
  if (row_of(collective).has_counts())
    spec.counts.assign(collective == Collective::alltoallv ? ranks * ranks : ranks, count);
  else
    spec.count = count;
  return spec;
}

std::size_t wide_size_of(const CellSpec& cell) {
  return widens(cell) ? size_of(DType::float32) : size_of(cell.dtype);
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
    throw UsageError(fmt::format("{} has no parameter 'radix'", source.spec_.name));
  if (source.spec_.segment_bytes != 0 && parameters.find("segment") == std::string_view::npos)
    throw UsageError(fmt::format("{} has no parameter 'segment'", source.spec_.name));
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

#include "colbench/plans/choice.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/job.hpp>
#include <col/plan.hpp>

#include "colbench/plans/plan_source.hpp"
#include "common/command_line.hpp"

namespace col::colbench {
namespace {

using tools::UsageError;

constexpr Duration kConnectTime = std::chrono::seconds(20);

// An empty value counts as none, as in the library.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A channel of one rank is enough to ask for what the backend has.
std::vector<NativeEntry> natives_of(BackendFactory& factory) {
  std::vector<PeerInfo> self(1);
  self.front().pid = ::getpid();
  self.front().hostname = "localhost";
  ConnectRequest request;
  request.group = "explain";
  request.store = make_memory_store();
  request.peers = self;
  WaitContext wait(Deadline::after(kConnectTime));
  const auto channel = factory.connect(request, wait);
  return {channel->native_entries().begin(), channel->native_entries().end()};
}

}  // namespace

ChoiceSettings ChoiceSettings::from_environment() {
  ChoiceSettings settings;
  try {
    settings.overrides = parse_overrides(environment("COL_ALGORITHM"));
    if (const std::string path = environment("COL_SELECTION"); !path.empty())
      settings.table = SelectionTable::load(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw UsageError(error.message());
  }
  const std::string numerics = environment("COL_NUMERICS");
  if (numerics == "strict") {
    settings.numerics = Numerics::strict;
  } else if (numerics == "deterministic") {
    settings.numerics = Numerics::deterministic;
  } else if (!numerics.empty() && numerics != "fast") {
    throw UsageError("COL_NUMERICS={} means nothing; use one of fast, strict, deterministic", numerics);
  }
  return settings;
}

std::string backend_of(const std::string& asked) {
  if (asked != "auto" && asked != "automatic") return asked;
  const BackendFactory* shm = find_backend("shm");
  return shm != nullptr && !shm->unavailable_reason() ? "shm" : "gloo";
}

SelectionQuery query_of(const CellSpec& cell, const std::string& backend) {
  SelectionQuery query{.collective = collective_of(cell.operation).value(),
                       .ranks = cell.ranks,
                       .ranks_per_node = cell.ranks,
                       .backend = backend};
  // Where the ranks do not all know the size, none is asked about.
  const CollectiveRow& row = row_of(query.collective);
  if (!row.has_private_counts() && row.out != Extent::nothing) query.bytes = whole_bytes(cell, cell.ranks);
  return query;
}

Chooser::Chooser(std::string backend, ChoiceSettings settings)
    : backend_(std::move(backend)), settings_(std::move(settings)) {
  BackendFactory* factory = find_backend(backend_);
  if (factory == nullptr) {
    std::vector<std::string> names = backend_names();
    names.insert(names.begin(), "auto");
    throw UsageError("there is no backend '{}'; choose from {}", backend_, fmt::join(names, ", "));
  }
  if (const auto reason = factory->unavailable_reason()) {
    unavailable_ = *reason;
    return;
  }
  natives_ = natives_of(*factory);
  native_names_.reserve(natives_.size());
  for (NativeEntry& entry : natives_) entry.name = native_names_.emplace_back(entry.name);  // the channel is gone
}

std::string Chooser::Result::text() const {
  return fmt::format("{}{}: {}", algorithm.text(), content, reason);
}

Chooser::Result Chooser::choose(const CellSpec& cell) const {
  const Collective collective = collective_of(cell.operation).value();
  for (const AlgorithmOverride& override_ : settings_.overrides) {
    if (override_.collective == collective) return named(override_.algorithm, cell);
  }
  std::string refused, refused_by_own;
  const SelectionQuery query = query_of(cell, backend_);
  const auto objection = [&](const AlgorithmSpec& spec) { return why_not(spec, cell, false); };
  if (settings_.table) {
    if (auto choice = col::choose(*settings_.table, query, objection, &refused_by_own)) {
      std::string content;
      if (!choice->algorithm.file.empty())
        content = fmt::format("#{:016x}", PlanFile::load(choice->algorithm.file).hash());
      return {choice->algorithm, choice->reason, &*settings_.table, content};
    }
  }
  if (auto choice = col::choose(SelectionTable::built_in(), query, objection, &refused)) {
    if (!refused_by_own.empty()) choice->reason += fmt::format(" ({})", refused_by_own);
    return {choice->algorithm, choice->reason, &SelectionTable::built_in()};
  }
  if (!refused_by_own.empty()) refused = fmt::format("{}; {}", refused_by_own, refused);
  for (const Algorithm& algorithm : algorithms()) {
    const AlgorithmSpec spec{.name = std::string(algorithm.name)};
    if (algorithm.collective == collective && !objection(spec))
      return {spec, fmt::format("no rule fits, and it is the first that can serve the call ({})", refused)};
  }
  throw UsageError("{}: no algorithm can serve this call: {}", to_string(collective), refused);
}

Chooser::Result Chooser::named(const AlgorithmSpec& algorithm, const CellSpec& cell) const {
  if (const auto problem = why_not(algorithm, cell, true))
    throw UsageError("{}: algorithm '{}', asked for by COL_ALGORITHM, cannot be used: {}", to_string(cell.operation),
                     algorithm.text(), *problem);
  Result result{algorithm, "asked for by COL_ALGORITHM"};
  if (!algorithm.file.empty()) result.content = fmt::format("#{:016x}", PlanFile::load(algorithm.file).hash());
  return result;
}

std::optional<Choice> Chooser::choose_by(const SelectionTable& table, const CellSpec& cell) const {
  return col::choose(table, query_of(cell, backend_),
                     [&](const AlgorithmSpec& spec) { return why_not(spec, cell, false); });
}

// The same words as in the library: the output of explain can be searched for in a log.
std::optional<std::string> Chooser::why_not(const AlgorithmSpec& spec, const CellSpec& cell, bool by_name) const {
  const Collective collective = collective_of(cell.operation).value();
  if (!spec.file.empty()) return why_not_file(spec, cell);
  const bool reduces = is_reduction(cell.operation);
  const bool deterministic = reduces && settings_.numerics == ChoiceSettings::Numerics::deterministic;
  for (const NativeEntry& entry : natives_) {
    if (entry.collective != collective || entry.name != spec.name) continue;
    const Op op(cell.op);
    if (reduces && entry.reduces != nullptr && !entry.reduces(op, cell.dtype))
      return fmt::format("{} does not combine {} by '{}'", entry.name, col::to_string(cell.dtype), op.name());
    if (deterministic && !entry.rank_order) return fmt::format("{} does not promise rank order", entry.name);
    const bool careful =
        settings_.numerics != ChoiceSettings::Numerics::fast || (!by_name && !moves_gpu_memory(backend_));
    if (entry.rounds_per_hop && row_of(cell.dtype).is_narrow() && reduces && careful)
      return fmt::format("{} rounds {} at every hop", entry.name, col::to_string(cell.dtype));
    if (entry.drops_nan && reduces && (cell.op == ReduceOp::min || cell.op == ReduceOp::max) && careful)
      return fmt::format("{} may lose a NaN", entry.name);
    return std::nullopt;
  }
  const Algorithm* algorithm = find_algorithm(collective, spec.name);
  if (algorithm == nullptr) {
    std::vector<std::string_view> names;
    for (const Algorithm& other : algorithms()) {
      if (other.collective == collective) names.push_back(other.name);
    }
    for (const NativeEntry& entry : natives_) {
      if (entry.collective == collective) names.push_back(entry.name);
    }
    return fmt::format("there is no such algorithm on backend {}; choose from '{}'", backend_,
                       fmt::join(names, "', '"));
  }
  if (spec.radix != 0 && algorithm->parameters.find("radix") == std::string_view::npos)
    return fmt::format("{} has no parameter 'radix'", spec.name);
  if (spec.segment_bytes != 0 && algorithm->parameters.find("segment") == std::string_view::npos)
    return fmt::format("{} has no parameter 'segment'", spec.name);
  if (deterministic && algorithm->order != FoldOrder::rank_order)
    return fmt::format("{} does not combine elements in rank order, as deterministic calls need", spec.name);
  const PlanProblem problem(problem_of(cell, spec));
  return algorithm->refuse(problem.request(0));
}

// A file in chunks is verified with one element in each, in place and not, as a group does it.
std::optional<std::string> Chooser::why_not_file(const AlgorithmSpec& spec, const CellSpec& cell) const {
  try {
    if (row_of(collective_of(cell.operation).value()).has_counts())
      return std::string("plans from files do not serve collectives with counts per rank");
    const PlanFile file = PlanFile::load(spec.file);
    const PlanProblem call(problem_of(cell, spec));
    if (auto refusal = file.refuse(call.request(0))) return refusal;
    Verdict verdict;
    for (const bool in_place : {true, false}) {
      if (file.chunks() == 0 && in_place != cell.in_place) continue;
      PlanProblem::Spec problem_spec = call.spec();
      problem_spec.in_place = in_place;
      if (file.chunks() > 0) problem_spec.count = file.chunks();
      const PlanProblem problem(std::move(problem_spec));
      verdict = verify(problem, [&](int rank) { return file.build(problem.request(rank)); });
      if (!verdict.good) return fmt::format("the plan is wrong{}: {}", in_place ? " in place" : "", verdict.problem);
    }
    const bool deterministic =
        is_reduction(cell.operation) && settings_.numerics == ChoiceSettings::Numerics::deterministic;
    if (deterministic && verdict.order != FoldOrder::rank_order)
      return std::string("the plan does not combine elements in rank order, as deterministic calls need");
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  }
}

std::vector<std::string> tuned_variants(const SelectionTable& table, const CellSpec& cell) {
  std::vector<std::string> variants;
  const auto collective = collective_of(cell.operation);
  if (!collective) return variants;
  for (const SelectionRule& rule : table.rules()) {
    const bool has_parameters = rule.algorithm.radix != 0 || rule.algorithm.segment_bytes != 0;
    SelectionQuery query{
        .collective = *collective, .ranks = group_size_of(cell), .bytes = rule.min_bytes, .backend = rule.backend};
    const bool fits = rule.backend.empty() || rule.backend == backend_of(cell.backend);
    if (!has_parameters || !fits || !rule.matches(query)) continue;
    const std::string text = rule.algorithm.text();
    if (std::find(variants.begin(), variants.end(), text) == variants.end()) variants.push_back(text);
  }
  return variants;
}

std::vector<CellSpec> with_tuned_variants(const std::vector<CellSpec>& cells) {
  std::vector<CellSpec> all;
  for (const CellSpec& cell : cells) {
    all.push_back(cell);
    if (cell.algorithm != "all") continue;
    for (const std::string& variant : tuned_variants(SelectionTable::built_in(), cell)) {
      all.push_back(cell);
      all.back().algorithm = variant;
    }
  }
  return all;
}

}  // namespace col::colbench

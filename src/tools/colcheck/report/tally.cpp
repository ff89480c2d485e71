#include "colcheck/report/tally.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colcheck/properties/list.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

Column* find_column(std::vector<Column>& columns, std::string_view backend, Devices devices) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& c) { return c.backend == backend && c.devices == devices; });
  return found == columns.end() ? nullptr : &*found;
}

Column& column_of(std::vector<Column>& columns, const Results& results, const std::string& backend, Devices devices) {
  if (Column* column = find_column(columns, backend, devices)) return *column;
  const bool fake = needs_gpu(devices, backend) && has_fake(results.gpus);
  return columns.emplace_back(Column{backend, devices, fake});
}

std::vector<Column> columns_of(const Results& results) {
  std::vector<Column> columns;
  for (const auto& [backend, devices] : results.backends) column_of(columns, results, backend, devices).used = true;
  for (const CaseResult& result : results.cases) {
    if (!result.c.backend.empty()) column_of(columns, results, result.c.backend, result.c.devices).used = true;
  }
  for (const auto& [name, why] : results.unavailable) {
    // Without the device there is no backend on it.
    const bool on_gpus = name == "cuda" || tools::moves_device_memory(name);
    Column& column =
        column_of(columns, results, on_gpus ? tools::device_backend() : name, on_gpus ? Devices::cuda : Devices::cpu);
    if (!column.used) column.why_not += (column.why_not.empty() ? "" : "; ") + name + ": " + why;
  }
  return columns;
}

PropertyCount& property_of(std::vector<PropertyCount>& list, const std::string& name, std::size_t columns) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const PropertyCount& p) { return p.name == name; });
  if (found != list.end()) return *found;
  const Property* property = find_property(name);
  return list.emplace_back(PropertyCount{
      name, std::string(property == nullptr ? "" : property->summary), std::vector<Count>(columns), {}, {}});
}

std::size_t place_of(const PropertyCount& counted) {
  const auto all = properties();
  return static_cast<std::size_t>(
      std::find_if(all.begin(), all.end(), [&](const Property* p) { return p->name == counted.name; }) - all.begin());
}

void add_skip(std::vector<SkipReason>& skips, const std::string& text) {
  const auto found = std::find_if(skips.begin(), skips.end(), [&](const SkipReason& s) { return s.text == text; });
  if (found == skips.end()) {
    skips.push_back({text, 1});
  } else {
    ++found->count;
  }
}

}  // namespace

std::size_t Results::count(Finding::Verdict verdict) const {
  const auto kept =
      std::count_if(cases.begin(), cases.end(), [&](const CaseResult& result) { return result.verdict == verdict; });
  return static_cast<std::size_t>(kept) + (verdict == Finding::Verdict::pass ? passed_while_soaking : 0);
}

void Count::add(Finding::Verdict verdict) {
  ++(verdict == Finding::Verdict::pass ? passed : verdict == Finding::Verdict::skip ? skipped : failed);
}

std::string_view to_string(State state) {
  constexpr std::array<std::string_view, 5> kNames = {"passed", "failed", "skipped", "none", "unavailable"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string Column::label() const {
  return fmt::format("{} ({}{})", backend, to_string(devices), fake ? ", fake" : "");
}

std::string Column::short_label() const {
  return needs_gpu(devices, backend) ? label() : backend;
}

State Tally::state(std::size_t primitive, std::size_t column) const {
  const Count& count = primitives[primitive][column];
  if (count.failed > 0) return State::failed;
  if (count.passed > 0) return State::passed;
  if (count.skipped > 0) return State::skipped;
  return columns[column].used ? State::none : State::unavailable;
}

std::size_t Tally::holes() const {
  std::size_t holes = 0;
  for (std::size_t primitive = 0; primitive < primitives.size(); ++primitive) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      holes += state(primitive, column) == State::none ? 1 : 0;
    }
  }
  return holes;
}

bool Tally::has_alone() const {
  return std::any_of(properties.begin(), properties.end(), [](const PropertyCount& p) { return p.alone.all() > 0; });
}

Tally tally(const Results& results) {
  Tally tally;
  tally.columns = columns_of(results);
  tally.primitives.fill(std::vector<Count>(tally.columns.size()));
  for (const CaseResult& result : results.cases) {
    PropertyCount& property = property_of(tally.properties, result.c.property, tally.columns.size());
    property.total.add(result.verdict);
    tally.total.add(result.verdict);
    if (result.verdict == Finding::Verdict::skip) add_skip(tally.skips, result.text);
    if (result.c.backend.empty()) {
      property.alone.add(result.verdict);
      continue;
    }
    const auto column =
        static_cast<std::size_t>(find_column(tally.columns, result.c.backend, result.c.devices) - tally.columns.data());
    property.columns[column].add(result.verdict);
    tally.primitives[static_cast<std::size_t>(result.c.primitive)][column].add(result.verdict);
  }
  std::stable_sort(tally.properties.begin(), tally.properties.end(),
                   [](const PropertyCount& a, const PropertyCount& b) { return place_of(a) < place_of(b); });
  std::stable_sort(tally.skips.begin(), tally.skips.end(),
                   [](const SkipReason& a, const SkipReason& b) { return a.count > b.count; });
  return tally;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Results& results) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"command", results.command},
      {"version", results.version},
      {"effort", results.effort},
      {"seed", fmt::format("{:#x}", results.seed)},
      {"started", results.started},
      {"took", tools::in_words(results.seconds)},
      {"host", results.host},
      {"CPUs", std::to_string(results.cpus)},
      {"world", fmt::format("{}{}", tools::counted(static_cast<std::size_t>(std::max(results.world_size, 0)), "rank"),
                            results.launcher.empty() ? "" : ", started by " + results.launcher)},
      {"ranks of the groups", tools::ranges_text(results.ranks)},
      {"backends", fmt::format("{}", fmt::join(backends_of(results), ", "))},
      {"GPUs", list_of(results.gpus)},
      {"NCCL", results.gpus.empty() ? "" : results.gpus.front().nccl},
      {"limits", fmt::format("{}", fmt::join(results.limits, "; "))}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

std::vector<std::string> backends_of(const Results& results) {
  std::vector<std::string> names;
  for (const UsedBackend& used : results.backends) {
    if (std::find(names.begin(), names.end(), used.name) == names.end()) names.push_back(used.name);
  }
  return names;
}

std::string found_by(const CaseResult& result) {
  return result.rank >= 0 ? fmt::format("rank {}: {}", result.rank, result.text) : result.text;
}

std::string smallest_of(const CaseResult& result) {
  if (result.smallest_token.empty()) return {};
  return fmt::format("smallest: {}{}{}", result.smallest_token, result.smallest_text.empty() ? "" : ": ",
                     result.smallest_text);
}

std::string repro_of(const CaseResult& result) {
  const std::string& smallest = result.smallest_token;
  return "colcheck --repro " + tools::shell_quoted(smallest.empty() ? token_of(result.c) : smallest);
}

}  // namespace col::colcheck

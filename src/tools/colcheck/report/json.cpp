#include "colcheck/report/report.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/json_text.hpp"

namespace col::colcheck {
namespace {

using Json = nlohmann::ordered_json;

std::string hexadecimal(std::uint64_t seed) {
  return fmt::format("{:#x}", seed);
}

// `text`, or null when it is empty.
Json or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

Json counts_of(const Count& count) {
  return {{"passed", count.passed}, {"failed", count.failed}, {"skipped", count.skipped}};
}

std::string_view name_of(Finding::Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"passed", "skipped", "failed"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Json run_of(const Results& results) {
  Json unavailable = Json::array();
  for (const auto& [name, why] : results.unavailable) unavailable.push_back({{"name", name}, {"why", why}});
  Json gpus = Json::array();
  for (std::size_t rank = 0; rank < results.gpus.size(); ++rank) {
    const tools::GpuFacts& gpu = results.gpus[rank].gpu;
    gpus.push_back({{"rank", rank}, {"name", gpu.name}, {"bus", gpu.bus}, {"fake", gpu.is_fake()}});
  }
  return {{"version", results.version},
          {"command", results.command},
          {"launcher", results.launcher},
          {"world_size", results.world_size},
          {"host", results.host},
          {"cpus", results.cpus},
          {"effort", results.effort},
          {"seed", hexadecimal(results.seed)},
          {"started", results.started},
          {"seconds", results.seconds},
          {"backends", backends_of(results)},
          {"unavailable", std::move(unavailable)},
          {"ranks", results.ranks},
          {"ended_early", or_null(results.ended_early)},
          {"gpus", std::move(gpus)},
          {"nccl", or_null(results.gpus.empty() ? "" : results.gpus.front().nccl)},
          {"limits", results.limits}};
}

Json matrix_of(const Tally& tally) {
  Json columns = Json::array();
  for (const Column& column : tally.columns) {
    columns.push_back({{"backend", column.backend},
                       {"device", to_string(column.devices)},
                       {"fake", column.fake},
                       {"used", column.used},
                       {"why_not", or_null(column.why_not)}});
  }
  Json rows = Json::array();
  for (std::size_t primitive = 0; primitive < tally.primitives.size(); ++primitive) {
    Json cells = Json::array();
    for (std::size_t column = 0; column < tally.columns.size(); ++column) {
      Json cell = Json::object();
      cell["state"] = to_string(tally.state(primitive, column));
      cell.update(counts_of(tally.primitives[primitive][column]));
      cells.push_back(std::move(cell));
    }
    rows.push_back({{"primitive", to_string(static_cast<Primitive>(primitive))}, {"cells", std::move(cells)}});
  }
  return {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Json properties_of(const Tally& tally) {
  Json list = Json::array();
  for (const PropertyCount& property : tally.properties) {
    Json backends = Json::object();
    for (std::size_t column = 0; column < tally.columns.size(); ++column) {
      if (property.columns[column].all() > 0) {
        backends[tally.columns[column].short_label()] = counts_of(property.columns[column]);
      }
    }
    Json entry = {{"name", property.name}, {"summary", property.summary}};
    entry.update(counts_of(property.total));
    entry["backends"] = std::move(backends);
    list.push_back(std::move(entry));
  }
  return list;
}

Json case_of(const CaseResult& result) {
  const Case& c = result.c;
  const bool moves = c.primitive != Primitive::barrier;
  Json entry = {{"token", token_of(c)},
                {"verdict", name_of(result.verdict)},
                {"property", c.property},
                {"backend", or_null(c.backend)},
                {"ranks", c.ranks},
                {"primitive", to_string(c.primitive)},
                {"algorithm", or_null(c.algorithm)},
                {"dtype", moves ? Json(col::to_string(c.dtype)) : Json()},
                {"op", is_reduction(c.primitive) ? Json(to_string(c.op)) : Json()},
                {"count", moves ? Json(c.count) : Json()},
                {"root", is_rooted(c.primitive) ? Json(c.root) : Json()},
                {"in_place", c.in_place},
                {"asynchronous", c.asynchronous},
                {"memory", to_string(c.placement)},
                {"device", to_string(c.devices)},
                {"seed", hexadecimal(c.seed)},
                {"rank", result.rank >= 0 ? Json(result.rank) : Json()},
                {"text", or_null(result.text)},
                {"smallest", Json()}};
  if (!result.smallest_token.empty()) {
    entry["smallest"] = {{"token", result.smallest_token}, {"text", result.smallest_text}};
  }
  return entry;
}

}  // namespace

std::string json_report(const Results& results) {
  const Tally counts = tally(results);
  Json totals = counts_of(counts.total);
  totals["passed_while_soaking"] = results.passed_while_soaking;
  totals["holes"] = counts.holes();
  Json cases = Json::array();
  for (const CaseResult& result : results.cases) cases.push_back(case_of(result));
  const Json report = {{"schema", "colcheck"},        {"schema_version", kJsonVersion},
                       {"run", run_of(results)},      {"totals", std::move(totals)},
                       {"matrix", matrix_of(counts)}, {"properties", properties_of(counts)},
                       {"cases", std::move(cases)}};
  constexpr int kIndent = 1;
  return core::json_text(report, kIndent) + "\n";
}

}  // namespace col::colcheck

#include "colbench/report/json.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "colbench/report/spec_json.hpp"
#include "colbench/report/values.hpp"
#include "colbench/stats/quantile.hpp"

namespace col::colbench {
namespace {

using Json = nlohmann::ordered_json;

// `text`, or null when it is empty.
Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// Nanoseconds, to a tenth of one; null for what is not finite.
Json nanoseconds(double seconds) {
  const double tenths = std::round(seconds * 1e10);
  if (!std::isfinite(tenths)) return {};
  constexpr double kExact = 9e15;  // whole numbers up to here are exact in both
  if (std::abs(tenths) < kExact && std::fmod(tenths, 10) == 0) return static_cast<std::int64_t>(tenths) / 10;
  return tenths / 10;
}

Json nanoseconds(std::optional<double> seconds) {
  return seconds ? nanoseconds(*seconds) : Json();
}

Json nanoseconds(const std::vector<double>& seconds) {
  Json list = Json::array();
  for (const double value : seconds) list.push_back(nanoseconds(value));
  return list;
}

// Rates and fractions: null for what is not finite, which JSON has no number for.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json run_of(const RunFacts& run) {
  Json environment = Json::object();
  for (const auto& [name, value] : run.environment) environment[name] = value;
  return {{"version", run.version},
          {"command", run.command},
          {"started", run.started},
          {"launcher", run.launcher},
          {"host", run.host},
          {"cpu", run.cpu},
          {"kernel", run.kernel},
          {"governor", run.governor},
          {"cpus", run.cpus},
          {"ranks", run.ranks},
          {"launches", run.launches},
          {"seed", seed_text(run.seed)},
          {"seconds", number(run.seconds)},
          {"target_interval", number(run.target_interval)},
          {"sync", run.sync},
          {"gpus", or_null(run.gpus)},
          {"nccl", or_null(run.nccl)},
          {"environment", std::move(environment)}};
}

Json machine_of(const Machine& machine) {
  Json levels = Json::array();
  for (const Machine::Level& level : machine.levels) {
    levels.push_back({{"bytes", level.bytes},
                      {"alone", number(level.alone)},
                      {"together", number(level.together)},
                      {"best", number(level.best)},
                      {"calibrations", level.calibrations}});
  }
  Json fits = Json::array();
  for (const Machine::Fit& fit : machine.fits) {
    Json best = Json::array();
    for (const Machine::Fit::Message& message : fit.best)
      best.push_back(
          {{"bytes", message.bytes}, {"seconds", number(message.seconds)}, {"calibrations", message.calibrations}});
    fits.push_back({{"backend", fit.backend},
                    {"alpha", number(fit.alpha)},
                    {"beta", number(fit.beta)},
                    {"gamma", number(fit.gamma)},
                    {"copy", number(fit.copy)},
                    {"best", std::move(best)},
                    {"best_gamma", number(fit.best_gamma)}});
  }
  return {{"levels", std::move(levels)},
          {"hand_over_seconds", number(machine.hand_over_seconds)},
          {"wake_up_seconds", number(machine.wake_up_seconds)},
          {"switch_seconds", number(machine.switch_seconds)},
          {"fits", std::move(fits)},
          {"node_of_rank", machine.node_of_rank}};
}

// Nothing can be said of what was not measured.
Json validity_of(const Cell& cell) {
  if (!cell.invalid.empty()) return cell.invalid;
  return cell.note.empty() ? Json(true) : Json();
}

Json stats_of(const Cell& cell) {
  const CellStatistics stats = statistics_of(cell);
  if (stats.n == 0) return {};
  const int size = group_size_of(cell.spec);
  const bool rate = cell.invalid.empty() && stats.median > 0;
  return {{"n", stats.n},
          {"p50", nanoseconds(stats.median)},
          {"ci_lo", stats.has_interval() ? nanoseconds(stats.low) : Json()},
          {"ci_hi", nanoseconds(stats.high)},
          {"p95", nanoseconds(stats.p95)},
          {"p99", nanoseconds(stats.p99)},
          {"min", nanoseconds(stats.min)},
          {"max", nanoseconds(stats.max)},
          {"mad", nanoseconds(stats.mad)},
          {"outliers", stats.outliers},
          {"autocorr", number(stats.autocorrelation)},
          {"skew", nanoseconds(stats.skew)},
          {"launch_spread", number(stats.launch_spread)},
          {"device_p50", nanoseconds(stats.device_median)},
          {"algbw", rate ? number(algorithm_bandwidth(cell.spec, stats.median)) : Json()},
          {"busbw", rate && size > 1 ? number(bus_bandwidth(cell.spec, size, stats.median)) : Json()}};
}

Json cell_of(const Cell& cell) {
  Json launches = Json::array();
  for (const LaunchSamples& launch : cell.launches) {
    launches.push_back({{"launch", launch.launch},
                        {"p50", launch.seconds.empty() ? Json() : nanoseconds(median(launch.seconds))},
                        {"late", launch.late},
                        {"ns", nanoseconds(launch.seconds)},
                        {"start_skew_ns", nanoseconds(launch.start_skew)},
                        {"device_ns", launch.device_seconds.empty() ? Json() : nanoseconds(launch.device_seconds)}});
  }
  return {{"spec", json_of_spec(cell.spec)},
          {"backend", cell.backend},
          {"algorithm", cell.algorithm},
          {"valid", validity_of(cell)},
          {"below_bound", cell.below_bound},
          {"fake", cell.fake},
          {"note", or_null(cell.note)},
          {"stop", cell.stop},
          {"check",
           {{"mode", cell.check.mode},
            {"elements", cell.check.elements},
            {"wrong", cell.check.wrong},
            {"first", or_null(cell.check.first)}}},
          {"bound",
           {{"ns", nanoseconds(cell.bound.seconds)},
            {"how", cell.bound.how},
            {"calibrations", cell.bound.calibrations},
            {"recalibrations", cell.bound.recalibrations}}},
          {"model_ns", nanoseconds(cell.model_seconds)},
          {"stats", stats_of(cell)},
          {"launches", std::move(launches)}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_flat(const Json& json) {
  return std::none_of(json.begin(), json.end(), [](const Json& item) { return item.is_structured(); });
}

// What holds nothing but values goes on one line: thousands of samples would be as many lines.
void write(const Json& json, std::size_t indent, std::string& text) {
  if (!json.is_structured() || is_flat(json)) {
    text += dump(json);
    return;
  }
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += first ? "\n" : ",\n";
    text.append(indent + 1, ' ');
    if (json.is_object()) text += dump(Json(key)) + ": ";
    write(value, indent + 1, text);
    first = false;
  }
  text += '\n';
  text.append(indent, ' ');
  text += json.is_object() ? '}' : ']';
}

}  // namespace

std::string json_results(const Results& results) {
  Json cells = Json::array();
  for (const Cell& cell : results.cells) cells.push_back(cell_of(cell));
  Json probes = Json::array();
  for (const Probe& probe : results.probes)
    probes.push_back({{"spin_ns", nanoseconds(probe.spin_seconds)}, {"copy_ns", nanoseconds(probe.copy_seconds)}});
  const Json report = {{"schema", "colbench"},          {"schema_version", kJsonVersion},
                       {"run", run_of(results.run)},    {"machine", machine_of(results.machine)},
                       {"probes", std::move(probes)},   {"cells", std::move(cells)},
                       {"warnings", results.warnings},  {"ended_early", or_null(results.ended_early)},
                       {"exit_code", results.exit_code}};
  std::string text;
  write(report, 0, text);
  return text + "\n";
}

}  // namespace col::colbench

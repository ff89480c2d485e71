#include "colbench/report/json.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "colbench/report/columns.hpp"
#include "colbench/report/spec_fields.hpp"
#include "colbench/stats/sample.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

using core::JsonBuilder;
using core::JsonPlace;

constexpr std::size_t kMostFileBytes = std::size_t{1} << 30;
constexpr core::Within kCount = core::within(0, std::numeric_limits<int>::max());
constexpr const char* kGiveAnother = "give a file that colbench --json has written";

// Seconds stand there as nanoseconds, to a tenth of one; null for what is not finite.
struct Nanoseconds {
  void write(JsonBuilder& out, double seconds) const {
    const double tenths = std::round(seconds * 1e10);
    constexpr double kExact = 9e15;  // whole numbers up to here are exact in both
    if (std::abs(tenths) < kExact && std::fmod(tenths, 10) == 0)
      out.add(static_cast<std::int64_t>(tenths) / 10);
    else
      out.add(tenths / 10);
  }
  void read(const JsonPlace& place, double& seconds) const { seconds = place.real(0, 1e18) / 1e9; }
};
constexpr Nanoseconds kNanoseconds;

// Rates and fractions: null for what is not finite, which is read as 0.
struct Measured {
  void read(const JsonPlace& place, double& value) const { value = place.is_null() ? 0 : place.real(); }
};
constexpr Measured kMeasured;

const core::TextOrNull kTextOrNull;

// Names and values of variables, as members.
struct Variables {
  using List = std::vector<std::pair<std::string, std::string>>;
  void write(JsonBuilder& out, const List& variables) const {
    out.begin_object();
    for (const auto& [name, value] : variables) {
      out.member(name);
      out.add(value);
    }
    out.end();
  }
  void read(const JsonPlace& place, List& variables) const {
    for (const std::string& name : place.names()) variables.emplace_back(name, place[name].text());
  }
};

// Why a cell counts for nothing; true when it counts. Nothing can be said of what was not measured.
struct Validity {
  void write(JsonBuilder& out, const std::string& invalid) const {
    if (!invalid.empty())
      out.add(invalid);
    else if (measured)
      out.add(true);
    else
      out.add(nullptr);
  }
  void read(const JsonPlace& place, std::string& invalid) const {
    if (place.is_text()) invalid = place.text();
    const bool says_nothing = place.is_text() ? invalid.empty() : !place.is_null() && !place.flag();
    if (says_nothing) place.fail("should be true or the reason why not");
  }
  bool measured;
};

}  // namespace

template <class Visit>
void fields(RunFacts& run, Visit& visit) {
  auto& [version, command, started, launcher, host, cpu, kernel, governor, cpus, ranks, launches, seed, seconds,
         target_interval, sync, gpus, nccl, other_work, environment] = run;
  visit("version", version);
  visit("command", command);
  visit("started", started);
  visit("launcher", launcher);
  visit("host", host);
  visit("cpu", cpu);
  visit("kernel", kernel);
  visit("governor", governor);
  visit("cpus", cpus, kRankInJson);
  visit("ranks", ranks, kRankInJson);
  visit("launches", launches, kRankInJson);
  visit("seed", seed, core::Hexadecimal());
  visit("seconds", seconds, kMeasured);
  visit("target_interval", target_interval, kMeasured);
  visit("sync", sync);
  // Files that were written before colbench knew of GPUs have neither.
  visit.optional("gpus", gpus, kTextOrNull);
  visit.optional("nccl", nccl, kTextOrNull);
  visit.optional("other_work", other_work);
  visit("environment", environment, Variables());
}

template <class Visit>
void fields(Machine::Level& level, Visit& visit) {
  auto& [bytes, alone, together, best, calibrations] = level;
  visit("bytes", bytes, kSizeInJson);
  visit("alone", alone, kMeasured);
  visit("together", together, kMeasured);
  visit("best", best, kMeasured);
  visit("calibrations", calibrations, kCount);
}

template <class Visit>
void fields(Machine::Fit::Message& message, Visit& visit) {
  auto& [bytes, seconds, calibrations] = message;
  visit("bytes", bytes, kSizeInJson);
  visit("seconds", seconds, kMeasured);
  visit("calibrations", calibrations, kCount);
}

template <class Visit>
void fields(Machine::Fit& fit, Visit& visit) {
  auto& [backend, alpha, beta, gamma, copy, best, best_gamma] = fit;
  visit("backend", backend);
  visit("alpha", alpha, kMeasured);
  visit("beta", beta, kMeasured);
  visit("gamma", gamma, kMeasured);
  visit("copy", copy, kMeasured);
  // Files that were written before there were bounds between nodes have neither.
  visit.optional("best", best);
  visit.optional("best_gamma", best_gamma, kMeasured);
}

template <class Visit>
void fields(Machine& machine, Visit& visit) {
  auto& [levels, hand_over_seconds, wake_up_seconds, switch_seconds, fits, node_of_rank] = machine;
  visit("levels", levels);
  visit("hand_over_seconds", hand_over_seconds, kMeasured);
  visit("wake_up_seconds", wake_up_seconds, kMeasured);
  visit("switch_seconds", switch_seconds, kMeasured);
  visit("fits", fits);
  visit.optional("node_of_rank", node_of_rank, kRankInJson);
}

template <class Visit>
void fields(Probe& probe, Visit& visit) {
  auto& [spin_seconds, copy_seconds] = probe;
  visit("spin_ns", spin_seconds, kNanoseconds);
  visit("copy_ns", copy_seconds, kNanoseconds);
}

template <class Visit>
void fields(Check& check, Visit& visit) {
  auto& [mode, elements, wrong, first] = check;
  visit("mode", mode);
  visit("elements", elements, kSizeInJson);
  visit("wrong", wrong, kSizeInJson);
  visit("first", first, kTextOrNull);
}

template <class Visit>
void fields(Bound& bound, Visit& visit) {
  auto& [seconds, how, calibrations, recalibrations] = bound;
  visit("ns", seconds, kNanoseconds);
  visit("how", how);
  visit("calibrations", calibrations, kCount);
  visit("recalibrations", recalibrations, kCount);
}

struct InStats {
  void write(JsonBuilder& out, const std::optional<double>& value) const {
    if (value && kind == Column::Kind::count)
      out.add(static_cast<std::int64_t>(*value));
    else if (kind == Column::Kind::time)
      core::write_json(out, value, kNanoseconds);
    else
      core::write_json(out, value);
  }
  Column::Kind kind;
};

// What follows from a cell's samples: for readers that do not compute it.
template <class Visit>
void fields(Row& row, Visit& visit) {
  for (const Column& column : json_columns()) visit(column.json.name, column.value(row), InStats{column.kind});
}

template <class Visit>
void fields(LaunchSamples& samples, Visit& visit) {
  auto& [launch, seconds, start_skew, device_seconds, late] = samples;
  visit("launch", launch, kRankInJson);
  visit.derived(
      "p50", [&] { return samples.seconds.empty() ? std::nullopt : std::optional(median(samples.seconds)); },
      kNanoseconds);
  visit("late", late, kCount);
  visit("ns", seconds, kNanoseconds);
  visit("start_skew_ns", start_skew, kNanoseconds);
  // Files that were written before colbench knew of GPUs' times have none.
  visit.optional("device_ns", device_seconds, core::NullFor<std::vector<double>, Nanoseconds>());
  const std::string as_many = fmt::format("should have as many values as 'ns': {}", seconds.size());
  visit.require(start_skew.empty() || start_skew.size() == seconds.size(), "start_skew_ns", as_many);
  visit.require(device_seconds.empty() || device_seconds.size() == seconds.size(), "device_ns", as_many);
}

template <class Visit>
void fields(Cell& cell, Visit& visit) {
  auto& [spec, backend, algorithm, launches, stop, check, bound, model_seconds, invalid, below_bound, fake, note] =
      cell;
  visit("spec", spec);
  visit("backend", backend);
  visit("algorithm", algorithm);
  visit("valid", invalid, Validity{.measured = note.empty()});
  visit("below_bound", below_bound);
  visit.optional("fake", fake);
  visit("note", note, kTextOrNull);
  visit("stop", stop);
  visit("check", check);
  visit("bound", bound);
  visit("model_ns", model_seconds, kNanoseconds);
  visit.derived("stats", [&] {
    const CellStatistics stats = statistics_of(cell);
    return stats.n == 0 ? std::nullopt : std::optional<Row>({cell, stats});
  });
  visit("launches", launches);
}

template <class Visit>
void fields(Results& results, Visit& visit) {
  auto& [run, machine, cells, probes, warnings, ended_early, exit_code] = results;
  visit.derived("schema", [] { return "colbench"; });
  visit.derived("schema_version", [] { return kJsonVersion; });
  visit("run", run);
  visit("machine", machine);
  // Files that were written before colbench probed the machine have none.
  visit.optional("probes", probes);
  visit("cells", cells);
  visit("warnings", warnings);
  visit("ended_early", ended_early, kTextOrNull);
  visit("exit_code", exit_code, core::within(0, 255));
}

namespace {

void check_schema(const JsonPlace& root) {
  if (!root.has("schema") || !root["schema"].is_text() || root["schema"].text() != "colbench")
    root.fail(fmt::format("these are no results of colbench; {}", kGiveAnother));
  const int version = root["schema_version"].whole<int>(1, kMostInJson);
  if (version != kJsonVersion) {
    root.fail(fmt::format("this is version {} of the format, and this colbench reads version {}; measure anew", version,
                          kJsonVersion));
  }
}

[[noreturn]] void cannot_read(const std::string& path, std::string_view why) {
  throw tools::UsageError(tools::one_line(fmt::format("cannot read {}: {}; {}", path, why, kGiveAnother)));
}

core::JsonDocument document_of(std::string_view text, const std::string& name) {
  try {
    return core::JsonDocument::parse(text, name, core::UnknownMembers::skipped);
  } catch (const Error& error) {
    throw tools::UsageError(tools::one_line(fmt::format("{}; {}", error.message(), kGiveAnother)));
  }
}

std::string content_of(const std::string& path) {
  struct stat facts {};
  // Before it is opened: opening a FIFO would wait for a writer.
  if (::stat(path.c_str(), &facts) != 0) cannot_read(path, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) cannot_read(path, std::strerror(EISDIR));
  if (!S_ISREG(facts.st_mode)) cannot_read(path, "it is no regular file");
  if (static_cast<std::uint64_t>(facts.st_size) > kMostFileBytes) cannot_read(path, "it is larger than 1 GiB");
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot_read(path, std::strerror(errno));
  std::string content(static_cast<std::size_t>(facts.st_size), '\0');
  file.read(content.data(), facts.st_size);
  if (file.bad()) cannot_read(path, std::strerror(errno));
  content.resize(static_cast<std::size_t>(file.gcount()));
  return content;
}

}  // namespace

std::string json_results(const Results& results) {
  JsonBuilder out;
  core::write_json(out, results);
  return out.compact_lists() + "\n";
}

Results parse_json_results(std::string_view text, const std::string& name) {
  const core::JsonDocument document = document_of(text, name);
  try {
    check_schema(document.root());
    Results results;
    core::read_json(document.root(), results);
    return results;
  } catch (const Error& error) {
    throw tools::UsageError(tools::one_line(error.message()));
  }
}

Results read_json_results(const std::string& path) {
  return parse_json_results(content_of(path), path);
}

}  // namespace col::colbench

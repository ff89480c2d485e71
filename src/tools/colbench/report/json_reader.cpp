#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "colbench/report/json.hpp"
#include "colbench/report/json_place.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"

namespace col::colbench {
namespace {

constexpr int kMany = 1'000'000;  // more ranks, launches, … than there can be
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
// Of what is counted.
constexpr int kMost = std::numeric_limits<int>::max();

// The value of an enumeration whose names are what `name` makes of 0 … count-1.
template <typename Enum>
Enum choice(const JsonPlace& place, int count, std::string_view (*name)(Enum)) {
  const std::string text = place.text();
  for (int i = 0; i < count; ++i) {
    if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  place.fail(fmt::format("'{}' is not known here", std::string(tools::cut(text, 40))));
}

std::vector<std::string> texts(const JsonPlace& place) {
  std::vector<std::string> list;
  for (const JsonPlace& item : place.list()) list.push_back(item.text());
  return list;
}

RunFacts read_run(const JsonPlace& place) {
  RunFacts run;
  run.version = place["version"].text();
  run.command = texts(place["command"]);
  run.started = place["started"].text();
  run.launcher = place["launcher"].text();
  run.host = place["host"].text();
  run.cpu = place["cpu"].text();
  run.kernel = place["kernel"].text();
  run.governor = place["governor"].text();
  run.cpus = place["cpus"].small(0, kMany);
  run.ranks = place["ranks"].small(0, kMany);
  run.launches = place["launches"].small(0, kMany);
  const auto seed = tools::parse_seed(place["seed"].text());
  if (!seed) place["seed"].fail("a seed is expected here, as in \"0x1f\"");
  run.seed = *seed;
  run.seconds = place["seconds"].number();
  run.target_interval = place["target_interval"].number();
  run.sync = place["sync"].text();
  // Files that were written before colbench knew of GPUs have neither.
  if (place.has("gpus")) run.gpus = place["gpus"].text_or_null();
  if (place.has("nccl")) run.nccl = place["nccl"].text_or_null();
  const JsonPlace environment = place["environment"];
  for (const std::string& name : environment.names()) run.environment.emplace_back(name, environment[name].text());
  return run;
}

Machine read_machine(const JsonPlace& place) {
  Machine machine;
  for (const JsonPlace& level : place["levels"].list()) {
    machine.levels.push_back({level["bytes"].size(), level["alone"].number(), level["together"].number(),
                              level["best"].number(), level["calibrations"].small(0, kMost)});
  }
  machine.hand_over_seconds = place["hand_over_seconds"].number();
  machine.wake_up_seconds = place["wake_up_seconds"].number();
  machine.switch_seconds = place["switch_seconds"].number();
  for (const JsonPlace& fit : place["fits"].list()) {
    machine.fits.push_back({fit["backend"].text(), fit["alpha"].number(), fit["beta"].number(), fit["gamma"].number(),
                            fit["copy"].number()});
    // Files that were written before there were bounds between nodes have neither.
    if (!fit.has("best")) continue;
    for (const JsonPlace& message : fit["best"].list())
      machine.fits.back().best.push_back(
          {message["bytes"].size(), message["seconds"].number(), message["calibrations"].small(0, kMost)});
    machine.fits.back().best_gamma = fit["best_gamma"].number();
  }
  if (place.has("node_of_rank")) {
    for (const JsonPlace& node : place["node_of_rank"].list()) machine.node_of_rank.push_back(node.small(0, kMany));
  }
  return machine;
}

CellSpec read_spec(const JsonPlace& place) {
  CellSpec spec;
  spec.operation = choice<Operation>(place["operation"], kOperationCount, to_string);
  spec.backend = place["backend"].text();
  spec.algorithm = place["algorithm"].text();
  spec.device = choice<Devices>(place["device"], kDevicesCount, to_string);
  spec.dtype = choice<DType>(place["dtype"], kDTypeCount, [](DType dtype) { return col::to_string(dtype); });
  spec.op = choice<ReduceOp>(place["op"], kReduceOpCount, [](ReduceOp op) { return col::to_string(op); });
  const JsonPlace root = place["root"];
  spec.root = root.is_text() && root.text() == "rotate" ? kRotatingRoot : root.small(0, kMany);
  spec.bytes = place["bytes"].size();
  spec.ranks = place["ranks"].small(1, kMany);
  spec.in_place = place["in_place"].flag();
  spec.cadence = choice<Cadence>(place["cadence"], 2, to_string);
  spec.cache = choice<CacheState>(place["cache"], 3, to_string);
  spec.groups = place["groups"].text_or_null();
  const JsonPlace pair = place["pair"];
  if (!pair.is_null()) {
    const std::vector<JsonPlace> ranks = pair.list();
    if (ranks.size() != 2) pair.fail("two ranks are expected here");
    spec.pair = {ranks[0].small(0, kMany), ranks[1].small(0, kMany)};
  }
  return spec;
}

LaunchSamples read_launch(const JsonPlace& place) {
  LaunchSamples samples;
  samples.launch = place["launch"].small(0, kMany);
  samples.late = place["late"].small(0, kMost);
  samples.seconds = place["ns"].all_seconds();
  samples.start_skew = place["start_skew_ns"].all_seconds();
  if (!samples.start_skew.empty() && samples.start_skew.size() != samples.seconds.size()) {
    place["start_skew_ns"].fail(fmt::format("as many values as in 'ns' are expected here: {}", samples.seconds.size()));
  }
  // Files that were written before colbench knew of GPUs' times have none.
  if (place.has("device_ns") && !place["device_ns"].is_null()) {
    samples.device_seconds = place["device_ns"].all_seconds();
    if (samples.device_seconds.size() != samples.seconds.size())
      place["device_ns"].fail(fmt::format("as many values as in 'ns' are expected here: {}", samples.seconds.size()));
  }
  return samples;
}

Cell read_cell(const JsonPlace& place) {
  Cell cell;
  cell.spec = read_spec(place["spec"]);
  cell.backend = place["backend"].text();
  cell.algorithm = place["algorithm"].text();
  const JsonPlace valid = place["valid"];
  if (!valid.is_true() && !valid.is_null()) {
    if (!valid.is_text() || valid.text().empty()) valid.fail("true or the reason why not is expected here");
    cell.invalid = valid.text();
  }
  cell.below_bound = place["below_bound"].flag();
  if (place.has("fake")) cell.fake = place["fake"].flag();
  cell.note = place["note"].text_or_null();
  cell.stop = place["stop"].text();
  const JsonPlace check = place["check"];
  cell.check = {check["mode"].text(), check["elements"].size(), check["wrong"].size(), check["first"].text_or_null()};
  const JsonPlace bound = place["bound"];
  cell.bound = {bound["ns"].seconds(), bound["how"].text(), bound["calibrations"].small(0, kMost),
                bound["recalibrations"].small(0, kMost)};
  const JsonPlace model = place["model_ns"];
  if (!model.is_null()) cell.model_seconds = model.seconds();
  for (const JsonPlace& launch : place["launches"].list()) cell.launches.push_back(read_launch(launch));
  return cell;
}

void check_schema(const JsonPlace& root, const nlohmann::json& document) {
  const auto schema = document.is_object() ? document.find("schema") : document.end();
  if (!document.is_object() || schema == document.end() || *schema != "colbench") {
    root.fail("these are no results of colbench; give a file that colbench --json has written");
  }
  const std::int64_t version = root["schema_version"].whole(1, kMany);
  if (version != kJsonVersion) {
    root.fail(fmt::format("this is version {} of the format, and this colbench reads version {}; measure anew", version,
                          kJsonVersion));
  }
}

[[noreturn]] void cannot_read(const std::string& path, std::string_view why) {
  throw tools::UsageError(
      tools::one_line(fmt::format("cannot read {}: {}; give a file that colbench --json has written", path, why)));
}

std::string content_of(const std::string& path) {
  // Not blocking, so that opening a FIFO does not wait for a writer.
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) cannot_read(path, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) cannot_read(path, std::strerror(EISDIR));
  if (!S_ISREG(facts.st_mode)) cannot_read(path, "it is no regular file");
  if (static_cast<std::uint64_t>(facts.st_size) > kMostBytes) cannot_read(path, "it is larger than 1 GiB");
  std::string content(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, std::strerror(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  content.resize(length);
  return content;
}

}  // namespace

Results parse_json_results(std::string_view text, const std::string& name) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    const auto* parse_error = dynamic_cast<const nlohmann::json::parse_error*>(&error);
    const std::size_t byte = parse_error != nullptr ? parse_error->byte : 0;
    const std::string where = byte > text.size() ? "it ends too early" : fmt::format("wrong at byte {}", byte);
    cannot_read(name, fmt::format("it is no JSON ({})", where));
  }
  const JsonPlace root(document, name);
  check_schema(root, document);
  Results results;
  results.run = read_run(root["run"]);
  results.machine = read_machine(root["machine"]);
  // Files that were written before colbench probed the machine have none.
  if (root.has("probes")) {
    for (const JsonPlace& probe : root["probes"].list())
      results.probes.push_back({probe["spin_ns"].seconds(), probe["copy_ns"].seconds()});
  }
  for (const JsonPlace& cell : root["cells"].list()) results.cells.push_back(read_cell(cell));
  results.warnings = texts(root["warnings"]);
  results.ended_early = root["ended_early"].text_or_null();
  results.exit_code = root["exit_code"].small(0, 255);
  return results;
}

Results read_json_results(const std::string& path) {
  return parse_json_results(content_of(path), path);
}

}  // namespace col::colbench

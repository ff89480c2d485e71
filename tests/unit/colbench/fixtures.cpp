#include "fixtures.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "colbench/report/report.hpp"
#include "support/catch.hpp"

namespace col::colbench {
namespace {

constexpr int kLaunches = 6;

double whole_nanoseconds(double seconds) {
  return std::round(seconds * 1e9) / 1e9;
}

}  // namespace

Cell sample_cell(Operation operation, const std::string& algorithm, std::size_t bytes, double seconds,
                 std::size_t samples) {
  Cell cell;
  cell.spec.operation = operation;
  cell.spec.backend = cell.backend = "shm";
  cell.spec.algorithm = cell.algorithm = algorithm;
  cell.spec.bytes = bytes;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t launch = i * kLaunches / samples;
    if (cell.launches.size() <= launch) cell.launches.push_back({.launch = static_cast<int>(launch)});
    const double percent = static_cast<double>(i * 37 % 101) / 20 - 2.5;  // in a scattered order
    cell.launches.back().seconds.push_back(whole_nanoseconds(seconds * (1 + percent / 100)));
    cell.launches.back().start_skew.push_back(whole_nanoseconds(4e-7));
  }
  cell.stop = "interval";
  cell.check = {"sample", 4096, 0, ""};
  cell.bound = {whole_nanoseconds(0.8 * seconds), "64 MiB must move at 41.2 GB/s (memory)", 5, 0};
  cell.model_seconds = whole_nanoseconds(1.1 * seconds);
  return cell;
}

Results sample_run() {
  Results results;
  RunFacts& run = results.run;
  run.version = "0.1.0";
  run.command = {"colbench", "allreduce,broadcast", "--sizes", "1K,32M", "--algo", "ring,mst"};
  run.started = "2024-05-06T07:08:09Z";
  run.launcher = "colbench";
  run.host = "node1";
  run.cpu = "Example CPU @ 2.4 GHz";
  run.kernel = "Linux 6.1";
  run.governor = "performance";
  run.cpus = 4;
  run.ranks = 2;
  run.launches = kLaunches;
  run.seed = 0xffffffffffffffffULL;
  run.seconds = 14.23;
  run.target_interval = 0.02;
  run.sync = "window";
  run.environment = {{"COL_TIMEOUT", "60s"}, {"OMP_NUM_THREADS", "1"}};
  results.machine.levels = {
      {32768, 88.1e9, 150e9, 93e9}, {1048576, 61.2e9, 99.8e9, 64e9}, {268435456, 11.2e9, 13.04e9, 13.1e9}};
  results.machine.hand_over_seconds = 1.2345e-7;
  results.machine.wake_up_seconds = 4.1e-6;
  results.machine.switch_seconds = 1.9e-6;
  results.machine.fits = {{"shm", 3.1e-7, 8.77e-11, 1.0 / 3e10, 5e-11},
                          {"gloo", 3.1e-5, 8.77e-10, 1.0 / 3e10, 5e-11, {{8, 2.9e-5, 35}, {65536, 9e-5, 35}}, 3e-11}};
  results.machine.node_of_rank = {0, 1};
  results.probes = std::vector<Probe>(kLaunches + 1, {5.14e-5, 2.83e-4});
  results.warnings = {"4 ranks on 2 cores: they take turns"};
  return results;
}

Results sample_results() {
  Results results = sample_run();
  auto& cells = results.cells;
  cells.push_back(sample_cell(Operation::allreduce, "ring", 1024, 5.31e-6, 300));
  cells.push_back(sample_cell(Operation::allreduce, "ring", 32 << 20, 7.7e-3));
  cells.push_back(sample_cell(Operation::allreduce, "mst", 1024, 3.2e-6, 300));
  cells.push_back(sample_cell(Operation::allreduce, "mst", 32 << 20, 15.1e-3, 5));  // too few for an interval
  cells.back().stop = "time";
  cells.push_back(sample_cell(Operation::allreduce, "auto", 1024, 40e-6));
  cells.back().spec.backend = cells.back().backend = "gloo";
  cells.back().algorithm = "ring";
  cells.push_back(sample_cell(Operation::allgather, "ring", 4096, 6e-6));
  cells.back().spec.groups = "mod:2";
  cells.back().spec.ranks = 4;
  cells.push_back(sample_cell(Operation::pingpong, "auto", 8, 0.53e-6));
  cells.back().spec.pair = {0, 1};
  cells.push_back(sample_cell(Operation::barrier, "dissemination", 0, 1.1e-6));
  cells.back().check = {"sample", 0, 0, ""};
  cells.push_back(sample_cell(Operation::broadcast, "mst", 32 << 20, 1e-6));
  cells.back().invalid = "1.00 us is below the bound of 2.60 ms";
  cells.back().below_bound = true;
  cells.push_back(sample_cell(Operation::broadcast, "linear", 1024, 2e-6));
  cells.back().invalid = "3 of 4,096 elements are wrong";
  cells.back().check = {"sample", 4096, 3, "rank 1, element 7: 3, not 12"};
  for (const std::size_t bytes : {std::size_t{1024}, std::size_t{32} << 20}) {
    cells.push_back(sample_cell(Operation::scan, "linear", bytes, 1, 0));
    cells.back().note = "rank 1 died";
    cells.back().stop.clear();
    cells.back().check = {"sample", 0, 0, ""};
    cells.back().model_seconds.reset();
  }
  return results;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string complaint_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    CHECK_FALSE(has(error.what(), "\n"));
    return error.what();
  }
  return "nothing";
}

std::string complaint_of(int (*command)(const Invocation&), const std::vector<std::string>& arguments) {
  const Measure measure = [](const Method&, std::span<const CellSpec>) -> Results {
    throw std::logic_error("it went on to measure");
  };
  return complaint_of([&] { command({.arguments = arguments, .screen = {}, .measure = measure}); });
}

}  // namespace col::colbench

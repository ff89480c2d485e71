#include "colbench/machine/network.hpp"

#include <nlohmann/json.hpp>

#include "colbench/machine/bound.hpp"
#include "colbench/merge.hpp"
#include "colbench/rank/fitting.hpp"
#include "colbench/report/json.hpp"
#include "support/catch.hpp"

using namespace col::colbench;

namespace {

constexpr std::size_t kKilo = 1024, kMebi = std::size_t{1} << 20;
constexpr double kAlpha = 40e-6, kBeta = 40e-9;  // a link of 25 MB/s

// A link that lets 32 KiB pass at once when it has rested.
Machine::Fit fit_with_burst() {
  Machine::Fit fit{.backend = "gloo", .best_gamma = 1e-10};
  for (const std::size_t bytes : kFitted)
    fit.best.push_back(
        {bytes, kAlpha + (bytes > 32 * kKilo ? static_cast<double>(bytes - 32 * kKilo) * kBeta : 0), 35});
  return fit;
}

// `ranks` ranks, so many on each node.
Machine machine_of(int ranks, int each) {
  Machine machine;
  machine.fits = {fit_with_burst()};
  for (int rank = 0; rank < ranks; ++rank) machine.node_of_rank.push_back(rank / each);
  return machine;
}

double bound_of_cell(Operation operation, std::size_t bytes, const Machine& machine, const std::string& groups = "") {
  const CellSpec spec{.operation = operation,
                      .backend = "gloo",
                      .bytes = bytes,
                      .ranks = static_cast<int>(machine.node_of_rank.size()),
                      .groups = groups};
  return network_bound(spec, machine, true).seconds;
}

Answer answer_of(std::vector<double> seconds, double operations = 1) {
  Answer answer{.operations = operations};
  for (const double one : seconds) answer.ended.push_back(one * operations);
  return answer;
}

}  // namespace

TEST_CASE("network: bytes pass a port no faster than the best messages of their length and beyond", "[colbench]") {
  const Machine::Fit fit = fit_with_burst();
  CHECK(least_passing_seconds(fit, 8) == 0);
  CHECK(least_passing_seconds(fit, 32 * kKilo) == 0);
  CHECK(least_passing_seconds(fit, 64 * kKilo) == Approx(32.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 256 * kKilo) == Approx(128.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 512 * kKilo) == Approx(480.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 14 * kMebi) == Approx(14.0 * kMebi * kBeta * (1 - 1.0 / 128)));
  // What really passes in so long, with the burst, is never more.
  for (std::size_t bytes = kKilo; bytes < 64 * kMebi; bytes += bytes / 3 + 1) {
    const double possible = kBeta * std::max(0.0, static_cast<double>(bytes) - 32.0 * kKilo);
    INFO(bytes);
    CHECK(least_passing_seconds(fit, bytes) <= possible * (1 + 1e-9));
  }
}

TEST_CASE("network: messages that cost less by the byte the longer they are bound shorter ones as well", "[colbench]") {
  Machine::Fit fit{.backend = "gloo", .best = {{8, 1e-5, 5}, {1000, 3e-5, 5}, {10'000, 5e-5, 5}}};
  CHECK(least_passing_seconds(fit, 1000) == Approx(4e-6));
  CHECK(least_passing_seconds(fit, 10'000) == Approx(4e-5));
  CHECK(least_passing_seconds(fit, 999) == 0);
  CHECK(least_passing_seconds({}, 1000) == 0);
}

TEST_CASE("network: what must pass a node's port, by collective", "[colbench]") {
  const double rate = kBeta * (1 - 1.0 / 128);
  const auto of = [&](double megabytes) { return Approx(megabytes * kMebi * rate); };
  const Machine machine = machine_of(8, 1);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine) == of(14));
  CHECK(bound_of_cell(Operation::broadcast, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::allgather, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::gatherv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::scatterv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::alltoall, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::alltoallv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::bidirectional, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::allreduce, 8, machine) == kAlpha);
  CHECK(bound_of_cell(Operation::barrier, 0, machine) == kAlpha);
  CHECK(bound_of_cell(Operation::oneway, 8, machine) == 0);  // many are on their way
  CHECK(bound_of_cell(Operation::store, 8 * kMebi, machine) == 0);
}

TEST_CASE("network: ranks of a node share its port and what has come through it", "[colbench]") {
  const double rate = kBeta * (1 - 1.0 / 128);
  const Machine machine = machine_of(8, 4);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine) == Approx(8.0 * kMebi * rate));
  // Four ranks send half of their blocks each.
  CHECK(bound_of_cell(Operation::alltoall, 8 * kMebi, machine) == Approx(16.0 * kMebi * rate));
  // Groups within a node have no network.
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine, "div:4") == 0);
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine, "pairs") == 0);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine, "mod:4") == Approx(8.0 * kMebi * rate));
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine, "bisect") == Approx(8.0 * kMebi * rate));
  // With unequal numbers all that is certain is that a message passes.
  CHECK(bound_of_cell(Operation::gather, 8 * kMebi, machine_of(8, 5)) == kAlpha);
}

TEST_CASE("network: no bound without nodes, without messages, or for another backend", "[colbench]") {
  CellSpec spec{.operation = Operation::allreduce, .backend = "gloo", .bytes = 8 * kMebi, .ranks = 8};
  Machine machine = machine_of(8, 1);
  CHECK(network_bound(spec, machine, true).seconds > 0);
  CHECK(network_bound(spec, machine_of(8, 8), true).seconds == 0);
  spec.backend = "shm";
  CHECK(network_bound(spec, machine, true).seconds == 0);
  spec.backend = "gloo";
  machine.fits[0].best.clear();
  CHECK(network_bound(spec, machine, true).seconds == 0);
  machine = machine_of(8, 1);
  machine.node_of_rank.clear();
  CHECK(network_bound(spec, machine, true).seconds == 0);
}

TEST_CASE("network: who counts from its own start may start after the message", "[colbench]") {
  const Machine machine = machine_of(8, 1);
  CellSpec spec{.operation = Operation::broadcast, .backend = "gloo", .bytes = 8, .ranks = 8};
  CHECK(network_bound(spec, machine, true).seconds == kAlpha);
  CHECK(network_bound(spec, machine, false).seconds == 0);
  spec.bytes = 8 * kMebi;
  CHECK(network_bound(spec, machine, false).seconds == Approx(network_bound(spec, machine, true).seconds - kAlpha));
  spec.operation = Operation::allreduce;
  CHECK(network_bound(spec, machine, false).seconds == network_bound(spec, machine, true).seconds);
  spec.bytes = 8;
  CHECK(network_bound(spec, machine, false).seconds == kAlpha);
  spec.cadence = Cadence::stream;
  CHECK(network_bound(spec, machine, true).seconds < 1e-9);  // what is left is reducing 7 bytes
}

TEST_CASE("network: the greater of the bounds of memory and network counts, and reducing is one", "[colbench]") {
  Machine machine = machine_of(8, 1);
  const CellSpec spec{.operation = Operation::allreduce, .backend = "gloo", .bytes = 8 * kMebi, .ranks = 8};
  machine.levels = {{.bytes = level_of(spec), .best = 10e9, .calibrations = 5}};
  const RunFacts run{.cpus = 8, .sync = "window"};
  CHECK(bound_of(spec, machine, run).how == "14M must pass a node's port, at 0.0252 GB/s");
  CHECK(bound_of(spec, machine, run).calibrations == 35);
  machine.levels[0].best = 1e6;
  CHECK(bound_of(spec, machine, run).how == "128M must move, at 0.0 GB/s");
  machine.levels.clear();
  machine.fits[0].best_gamma = 1e-6;
  CHECK(bound_of(spec, machine, run).seconds == Approx(7.0 * kMebi * 1e-6));
  CHECK(bound_of(spec, machine, run).how == "each rank must reduce, at 0.001 GB/s");
}

TEST_CASE("network: the best messages of all launches count, and JSON keeps them", "[colbench]") {
  Results all, one, two;
  one.machine = two.machine = machine_of(4, 1);
  two.machine.fits[0].best = {{8, kAlpha / 2, 5}, {16, 1, 5}};
  two.machine.fits[0].best_gamma = 5e-11;
  add_launch(all, parse_json_results(json_results(one), "one"));
  add_launch(all, parse_json_results(json_results(two), "two"));
  CHECK(all.machine.node_of_rank == std::vector<int>{0, 1, 2, 3});
  REQUIRE(all.machine.fits.size() == 1);
  const Machine::Fit& fit = all.machine.fits[0];
  CHECK(fit.best_gamma == 5e-11);
  REQUIRE(fit.best.size() == kFitted.size() + 1);
  CHECK(fit.best[0].seconds == kAlpha / 2);
  CHECK(fit.best[0].calibrations == 40);
  CHECK(fit.best[1].bytes == 16);
  CHECK(fit.best[2].seconds == one.machine.fits[0].best[1].seconds);
  // Files from before there were such bounds.
  auto old = nlohmann::json::parse(json_results(one));
  old["machine"].erase("node_of_rank");
  old["machine"]["fits"][0].erase("best");
  old["machine"]["fits"][0].erase("best_gamma");
  const Results read = parse_json_results(old.dump(), "old");
  CHECK(read.machine.node_of_rank.empty());
  CHECK(read.machine.fits[0].best.empty());
}

TEST_CASE("fitting: messages go between nodes, one by one and all at once", "[colbench]") {
  const std::vector<CellSpec> within = cells_to_fit("gloo", 4, {});
  REQUIRE(within.size() == kFitted.size());
  CHECK_FALSE(within[0].pair);
  const std::vector<int> nodes = {0, 0, 1, 1, 0};
  const std::vector<CellSpec> cells = cells_to_fit("gloo", 5, nodes);
  REQUIRE(cells.size() == 2 * kFitted.size() + 2);
  CHECK(cells[0].pair == std::pair(0, 3));
  CHECK(cells[kFitted.size()].groups == "bisect:2");
  CHECK(cells[2 * kFitted.size()].operation == Operation::alltoall);
  CHECK(cells.back().operation == Operation::oneway);
  CHECK(cells.back().bytes == kFitted.back());
  CHECK(cells.back().pair == std::pair(0, 3));
}

TEST_CASE("fitting: what passes the busiest port of several at once adds up", "[colbench]") {
  const std::vector<int> nodes = {0, 0, 1, 1};
  CellSpec spec{
      .operation = Operation::pingpong, .dtype = col::DType::uint8, .bytes = 1000, .ranks = 4, .groups = "bisect:2"};
  // Of two pairs at once: a byte takes half as long as one of them says. The slower rank of a pair counts.
  const std::vector<Answer> answers = {answer_of({4, 2}, 2), answer_of({4, 3}, 2), answer_of({1, 2}, 2),
                                       answer_of({1, 2}, 2)};
  CHECK(longest_of(answers, 2) == std::vector<double>{4, 3});
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(1000 / (1000.0 / 2 + 1000.0 / 3)));
  spec.bytes = kFitted.front();
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(2));
  spec.groups = "pairs";
  CHECK(least_between_nodes(spec, answers, nodes) == 0);
  // Each of the two ranks of a node sends half of its 1000 bytes away.
  spec = {.operation = Operation::alltoall, .dtype = col::DType::uint8, .bytes = 1000, .ranks = 4};
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(3));
  // Refused.
  CHECK(least_between_nodes(spec, std::vector<Answer>(4), nodes) == 0);
}

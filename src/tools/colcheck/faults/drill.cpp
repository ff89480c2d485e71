#include "colcheck/faults/drill.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colcheck/engine/mix.hpp"
#include "json/json_fields.hpp"

namespace col::colcheck {
namespace {

std::string_view to_string(Drill::Oddity oddity) {
  constexpr std::array<std::string_view, 10> kNames = {
      "none",   "calls_other", "stays_away",        "never_joins",    "walks_out",
      "leaves", "copies_late", "sends_another_tag", "all_send_first", "hangs"};
  return kNames[static_cast<std::size_t>(oddity)];
}

PlanProblem problem_of(const Case& c, Collective collective) {
  PlanProblem::Spec spec{.collective = collective, .size = c.ranks, .root = c.root, .count = c.count};
  const AlgorithmSpec algorithm = AlgorithmSpec::parse(c.algorithm);
  spec.parameters.radix = algorithm.radix;
  spec.parameters.segment = algorithm.segment_bytes / size_of(c.dtype);
  if (is_v_form(c.primitive)) {
    for (int from = 0; from < c.ranks; ++from) {
      const int columns = c.primitive == Primitive::alltoallv ? c.ranks : 1;
      for (int to = 0; to < columns; ++to)
        spec.counts.push_back(columns == 1 ? block_count(c, from, from) : block_count(c, from, to));
    }
  }
  return PlanProblem(spec);
}

}  // namespace

Case numbered(Case c, int number) {
  c.seed = mix(c.seed, static_cast<std::uint64_t>(number));
  return c;
}

int count_steps(const Case& c, int rank) {
  const auto collective = collective_of(c.primitive);
  if (!collective) return 0;
  const Algorithm* algorithm = find_algorithm(*collective, AlgorithmSpec::parse(c.algorithm).name);
  if (algorithm == nullptr) return 1;
  const PlanProblem problem = problem_of(c, *collective);
  const PlanRequest request = problem.request(rank);
  if (algorithm->refuse(request)) return 0;
  const Plan plan = algorithm->build(request);
  int steps = 0;
  Round round;
  for (std::size_t i = 0; i < plan.rounds; ++i) {
    plan.round(i, round);
    steps += static_cast<int>(round.steps().size());
  }
  return steps;
}

template <class Visit>
void fields(Drill& drill, Visit& visit) {
  auto& [c, calls, odd, oddity, other, asks_to_join, asks_to_call, descriptors, descriptors_late, file_bytes,
         without_memfd, shm_holder, in_flight, regroups, tangle_ms, more_groups] = drill;
  visit("case", c, AsToken());
  visit("calls", calls, core::within(1));
  visit("odd", odd, core::within(-1, static_cast<std::uint64_t>(c.ranks - 1)));
  visit("oddity", oddity, core::Named{Drill::Oddity::hangs, to_string});
  visit("other", other, AsToken());
  visit.require((oddity == Drill::Oddity::calls_other) == other.has_value(), "oddity", "should have its other call");
  visit("asks_to_join", asks_to_join);
  visit("asks_to_call", asks_to_call);
  visit("descriptors", descriptors);
  visit("descriptors_late", descriptors_late);
  visit("file_bytes", file_bytes);
  visit("without_memfd", without_memfd);
  visit("shm_holder", shm_holder);
  visit("in_flight", in_flight);
  visit("regroups", regroups);
  visit("tangle_ms", tangle_ms, core::within(1));
  visit("more_groups", more_groups);
}

template <class Visit>
void fields(Report& report, Visit& visit) {
  auto& [code, error_rank, message, doing, seconds, later, regrouped, at_ns] = report;
  visit("code", code);
  visit("rank", error_rank);
  visit("message", message);
  visit("doing", doing);
  visit("seconds", seconds);
  visit("later", later);
  visit("regrouped", regrouped);
  visit("at_ns", at_ns);
}

std::string encode(const Drill& drill) {
  return core::json_line(drill);
}

std::string encode(const Report& report) {
  return core::json_line(report);
}

Drill decode_drill(std::string_view text) {
  try {
    return core::parsed_json<Drill>(text, "the drill");
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        fmt::format("{}; --fault-rank is for colcheck --faults, which writes its text", error.what()));
  }
}

std::optional<Report> decode_report(std::string_view line) {
  try {
    return core::parsed_json<Report>(line, "report");
  } catch (const Error&) {  // a rank that was killed in the middle of its line
    return std::nullopt;
  }
}

}  // namespace col::colcheck

// A rank that hangs in its own code, while calls of several groups and messages are in flight. Every rank that waits
// for it, directly or through other ranks, names it when the timeout has passed. It computes forever (Case::variant 0),
// or is stopped (1).
#include <csignal>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/tangle.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kComputes, kIsStopped, kWays };
// Seconds: how late they are is judged elsewhere.
constexpr double kPatience = 10;

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool full = selection.effort == Effort::full;
  std::vector<int> sizes = drill_ranks(selection, 3);
  if (full && !sizes.empty()) sizes = {3, 4, 5, 6, 8};
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (int repeat = 0; repeat < (full ? 25 : 4) && !sizes.empty(); ++repeat) {
      Case c;
      c.property = "hung";
      c.backend = backend;
      c.seed = mix(selection.seed, 61, ++number);
      c.ranks = sizes[number % sizes.size()];
      c.variant = number % 4 == 0 ? kIsStopped : kComputes;
      all.push_back(c);
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const int victim = Tangle::victim(c.seed, c.ranks);
  Drill drill{.c = c, .odd = victim, .oddity = Drill::Oddity::hangs};
  Job job({.ranks = c.ranks, .arguments = {"--fault-rank", encode(drill)}});
  job.await_point(victim, "away");
  if (c.variant == kIsStopped) job.signal(victim, SIGSTOP);
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != victim) job.await_report(rank);
  }
  job.signal(victim, SIGKILL);
  // They have stayed until now: one that ends would be named by those that still wait.
  for (int rank = 0; rank < c.ranks; ++rank) job.go_on(rank);
  const JobEnd end = job.finish();
  return Finding::of(first_of(
      {problem_with_errors(
           end, {.code = ErrorCode::timeout, .culprit = victim, .exempt = {victim}, .since = 0, .within = kPatience}),
       problem_with_traces(end)}));
}

}  // namespace

const Property kFaultHung{
    "hung", "a rank that hangs in its own code, with calls of several groups in flight, is named by the others",
    Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck

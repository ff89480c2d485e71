// The drill: while a job hangs, the sentence of coljob why names the rank to blame, and the cause. The hangs are drawn
// from a list by the seed: each primitive, and what only messages and several groups can do wrong (Case::variant).
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include <col/job.hpp>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/property.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/rank_drills.hpp"
#include "colcheck/properties/list.hpp"
#include "launch/report/look.hpp"
#include "launch/report/why.hpp"

namespace col::colcheck {
namespace {

using launch::Why;

// How a job hangs.
enum Hang : std::uint64_t {
  kStaysAway,       // a rank does not make the last call
  kAwayAndStopped,  // the same, and it is stopped
  kNeverJoins,      // a rank does not come to the making of the group
  kTangle,          // a rank stops in the middle of a program over several groups
  kWrongTag,        // a rank sends with another tag than its neighbour receives
  kCircle,          // all ranks send to the next before they receive
  kHangs
};

constexpr std::size_t kUsualHangs = 12;
constexpr int kHangCalls = 3;
constexpr Duration kHangTimeout = std::chrono::seconds(30), kHangLimit = std::chrono::seconds(40);
// A wait that has lasted for so long is no chance; and a rank that a busy machine lets wait may be blamed before the
// right one has come to its place, so a wrong answer may be corrected for a while.
constexpr double kHangSeconds = 0.25, kPatienceSeconds = 15;
constexpr double kMostSeconds = 1;  // for an answer
constexpr Duration kPauseToAsk = std::chrono::milliseconds(20);

struct Planned {
  Primitive primitive = Primitive::barrier;
  Hang hang = kStaysAway;
  bool asynchronous = false;
};

std::vector<Planned> all_hangs() {
  std::vector<Planned> hangs;
  for (int number = 0; number < Primitive::collectives() + kMessagesCount; ++number) {
    const Primitive primitive(number);
    hangs.push_back({primitive, kStaysAway, false});
    if (has_i_form(primitive)) hangs.push_back({primitive, kStaysAway, true});
  }
  for (const Primitive primitive : {Primitive(Primitive::barrier), Primitive(Primitive::allreduce)})
    hangs.push_back({primitive, kAwayAndStopped, false});
  for (int repeat = 0; repeat < 4; ++repeat) hangs.push_back({Primitive::barrier, kTangle, false});
  for (const Hang hang : {kNeverJoins, kWrongTag, kCircle}) hangs.push_back({Primitive::barrier, hang, false});
  return hangs;
}

void add_explained(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "why", drill_ranks(selection, 3), all);
  std::vector<std::string> backends = drills.backends();
  std::erase_if(backends, is_over_hosts);  // each host has a page of its own
  if (backends.empty()) return;
  std::vector<Planned> hangs = all_hangs();
  std::mt19937_64 random(mix(selection.seed, 71));
  std::shuffle(hangs.begin(), hangs.end(), random);
  if (!drills.full()) hangs.resize(std::max(kUsualHangs, backends.size()));
  for (std::size_t i = 0; i < hangs.size(); ++i) {
    for (std::size_t backend = 0; backend < backends.size(); ++backend) {
      if (!drills.full() && i % backends.size() != backend) continue;
      Case& c = drills.add(backends[backend], hangs[i].primitive);
      c.variant = hangs[i].hang;
      c.asynchronous = hangs[i].asynchronous;
    }
  }
}

// What a control page beside the keys of the job's store says.
std::optional<launch::JobStory> look_at_job_of(const Job& job) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(job.store_directory(), failed)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(".control.") || name.find(".tmp.") != std::string::npos) continue;
    try {
      return launch::look_at_job(*ControlPage::look_at(entry.path()), "drill", launch::kReportedCalls);
    } catch (const Error&) {  // it is being made
    }
  }
  return std::nullopt;
}

struct Expected {
  std::vector<Why::Cause> causes;  // one of these
  std::vector<int> culprits;

  bool is(const Why& found) const {
    return std::find(causes.begin(), causes.end(), found.cause) != causes.end() && found.culprits == culprits;
  }
};

Expected expected_answer(const Case& c, int victim) {
  switch (c.variant) {
    case kAwayAndStopped:
      return {{Why::Cause::stopped}, {victim}};
    case kTangle:  // it may have started what the others wait for longest
      return {{Why::Cause::own_code, Why::Cause::not_waited}, {victim}};
    case kWrongTag:
      return {{Why::Cause::wrong_tag}, {victim}};
    case kCircle: {
      std::vector<int> ranks(static_cast<std::size_t>(c.ranks));
      std::iota(ranks.begin(), ranks.end(), 0);
      return {{Why::Cause::circle}, ranks};
    }
    default:
      return {{Why::Cause::own_code}, {victim}};
  }
}

// Asks until the answer is right. What is wrong with the last one otherwise.
std::string problem_with_answers(Job& job, const Expected& expected) {
  Why found;
  double slowest = 0;
  for (const double until = job.now() + kPatienceSeconds; job.now() < until; job.pause(kPauseToAsk)) {
    const double asked = job.now();
    const std::optional<launch::JobStory> story = look_at_job_of(job);
    if (!story) continue;
    found = launch::why(*story);
    slowest = std::max(slowest, job.now() - asked);
    if (!expected.is(found) || found.seconds < kHangSeconds) continue;
    if (slowest <= kMostSeconds) return {};
    return fmt::format("an answer has taken {:.2f} s, and at most {:.2f} s are allowed", slowest, kMostSeconds);
  }
  std::vector<std::string_view> names;
  for (const Why::Cause cause : expected.causes) names.push_back(to_string(cause));
  return fmt::format("why says: {} (cause {}, to blame: {}); expected {}, to blame: {}", found.sentence,
                     to_string(found.cause), fmt::join(found.culprits, ", "), fmt::join(names, " or "),
                     fmt::join(expected.culprits, ", "));
}

Drill hanging_drill(const Case& c, int victim) {
  using Oddity = Drill::Oddity;
  Drill drill{.c = c, .calls = kHangCalls, .odd = victim, .oddity = Oddity::stays_away};
  // A receive from any rank may take the message of the next call.
  if (c.primitive == Primitive::recv_any) drill.calls = 1;
  if (c.variant == kNeverJoins) drill.oddity = Oddity::never_joins;
  if (c.variant == kTangle) drill.oddity = Oddity::hangs;
  if (c.variant == kWrongTag) drill.oddity = Oddity::sends_another_tag;
  if (c.variant == kCircle) drill.oddity = Oddity::all_send_first;
  drill.tangle_ms = std::chrono::duration_cast<std::chrono::milliseconds>(kHangTimeout).count();
  return drill;
}

Finding run_explained(Rank& /*rank*/, const Case& c) {
  const int victim = c.variant == kTangle ? Tangle::victim(c.seed, c.ranks) : victim_of(c);
  Job job(spec_of(hanging_drill(c, victim), {.timeout = kHangTimeout, .limit = kHangLimit}));
  const bool goes_away = c.variant != kWrongTag && c.variant != kCircle;
  if (goes_away) job.await_point(victim, "away");
  if (c.variant == kAwayAndStopped) job.signal(victim, SIGSTOP);
  std::string problem = problem_with_answers(job, expected_answer(c, victim));
  for (int rank = 0; rank < c.ranks; ++rank) job.signal(rank, SIGKILL);
  return Finding::of(first_of({std::move(problem), problem_with_traces(job.finish())}));
}

}  // namespace

const Property kFaultExplained{
    "why", "while a job hangs, coljob's sentence names the rank to blame and the cause: hangs of all kinds, drawn",
    Property::Kind::fault, &add_explained, &run_explained};

}  // namespace col::colcheck

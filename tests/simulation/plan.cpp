#include "simulation/plan.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "core/duration.hpp"

namespace col::test {

namespace {

void widen(JobPlan& plan, Random& random) {
  plan.channel = random.one_in(2) ? ChannelKind::plain : ChannelKind::drafting;
  if (plan.channel == ChannelKind::drafting && plan.hosts == 1 && random.one_in(2))
    plan.channel = ChannelKind::planting;
  plan.has_turns = random.one_in(4);
  plan.records_steps = random.one_in(8);
  if (random.one_in(12)) plan.mistake = choose_mistake(random, plan.ranks);
  widen(plan.program, random, plan.ranks, plan.has_turns);
  for (Step& step : plan.program.steps) step.is_native = step.is_native && plan.channel != ChannelKind::plain;
  const auto calls = static_cast<int>(plan.program.steps.size()) * plan.ranks;
  if (!plan.faults.empty() && plan.faults.size() < 3 && random.one_in(8))
    plan.faults.push_back(choose_interrupt(random, plan.ranks, calls));
}

// At any time of a renewal, which takes some messages and a few trips to the store.
Duration choose_moment(Random& random, const JobPlan& plan) {
  return random.skewed_below(20 * static_cast<std::uint64_t>(plan.longest_delay.count())) * Duration(1);
}

// Kills and short stops.
std::vector<std::vector<Fault>> choose_renewals(Random& random, const JobPlan& plan) {
  std::vector<std::vector<Fault>> renewals(static_cast<std::size_t>(random.from_to(1, 4)));
  for (auto& faults : renewals) {
    for (int more = random.one_in(2) ? random.from_to(1, 3) : 0; more > 0; --more) {
      const bool is_kill = random.one_in(2);
      const auto longest = static_cast<std::uint64_t>(plan.timeout.count()) / 4;
      faults.push_back({.kind = is_kill ? Fault::Kind::kill : Fault::Kind::stop,
                        .rank = random.from_to(0, plan.ranks - 1),
                        .delay = choose_moment(random, plan),
                        .length = is_kill ? Duration() : Duration(random.skewed_below(longest))});
    }
  }
  return renewals;
}

// In the places of ranks that are killed: of one more, and of most others. Some newcomers are killed or stand still
// themselves, maybe before they are in.
void choose_newcomers(Random& random, JobPlan& plan) {
  if (random.one_in(4)) return;
  const int place = random.from_to(0, plan.ranks - 1);
  plan.renewals[random.below(plan.renewals.size())].push_back(
      {.kind = Fault::Kind::kill, .rank = place, .delay = choose_moment(random, plan)});
  plan.newcomers.push_back(place);
  plan.renewals.emplace_back();
  const auto consider = [&](const Fault& fault) {
    if (fault.kind == Fault::Kind::kill && std::ranges::count(plan.newcomers, fault.rank) == 0 && !random.one_in(3))
      plan.newcomers.push_back(fault.rank);
  };
  std::ranges::for_each(plan.faults, consider);
  for (const auto& faults : plan.renewals) std::ranges::for_each(faults, consider);
  for (int newcomer = 0; newcomer < static_cast<int>(plan.newcomers.size()); ++newcomer) {
    if (!random.one_in(4)) continue;
    const auto longest = static_cast<std::uint64_t>(plan.timeout.count()) / 4;
    const bool is_kill = random.one_in(2);
    const Duration delay(random.skewed_below(longest)), length(random.skewed_below(longest));
    plan.renewals[random.below(plan.renewals.size())].push_back(
        {.kind = is_kill ? Fault::Kind::kill : Fault::Kind::stop,
         .rank = plan.process_of_newcomer(newcomer),
         .delay = delay,
         .length = is_kill ? Duration() : length});
  }
}

}  // namespace

JobPlan choose_plan(std::uint64_t seed, int draws) {
  Random random(seed * 2 + 1), more(seed * 2 + 0x1'0000'0001), wider(seed * 2 + 0x2'0000'0001);
  JobPlan plan;
  plan.draws = draws;
  plan.ranks = random.from_to(2, 8);
  plan.hosts = random.one_in(2) ? 1 : random.from_to(1, std::min(3, plan.ranks));
  plan.has_pages = !random.one_in(4);
  plan.meets = random.one_in(3);
  plan.has_progress_thread = random.one_in(4);
  plan.is_strict = random.one_in(8);
  plan.timeout = std::array{std::chrono::seconds(1), std::chrono::seconds(2), std::chrono::seconds(5),
                            std::chrono::seconds(30)}[random.below(4)];
  plan.longest_delay = std::array{std::chrono::microseconds(20), std::chrono::microseconds(200),
                                  std::chrono::microseconds(2000)}[random.below(3)];
  plan.program = choose_program(random, more, plan.ranks);
  const auto calls = static_cast<int>(plan.program.steps.size()) * plan.ranks;
  if (!random.one_in(4)) plan.faults = choose_faults(random, plan.ranks, calls, plan.timeout);
  plan.destroys = more.one_in(3);
  if (!plan.faults.empty() && plan.faults.size() < 3 && more.one_in(4))
    plan.faults.push_back(choose_store_fault(more, plan.ranks, calls, plan.timeout));
  if (draws >= 2) widen(plan, wider);
  Random renewing(seed * 2 + 0x3'0000'0001);
  if (draws >= 4 && renewing.one_in(3)) plan.renewals = choose_renewals(renewing, plan);
  Random joining(seed * 2 + 0x4'0000'0001);
  if (draws >= 5 && !plan.renewals.empty() && !plan.meets) choose_newcomers(joining, plan);
  return plan;
}

bool JobPlan::starts_progress_thread() const {
  return has_progress_thread || std::ranges::any_of(program.steps, &Step::continues);
}

std::string describe(const JobPlan& plan) {
  std::string text = fmt::format("{} ranks on {} hosts, {}timeout {}, delays up to {}", plan.ranks, plan.hosts,
                                 plan.meets       ? "meets, "
                                 : plan.has_pages ? ""
                                                  : "no control page, ",
                                 core::format_duration(plan.timeout), core::format_duration(plan.longest_delay));
  if (plan.has_progress_thread) text += ", progress thread";
  if (plan.is_strict) text += ", strict";
  if (plan.destroys) text += ", destroys groups";
  if (plan.channel != ChannelKind::plain) text += fmt::format(", {}", backend_of(plan.channel));
  if (plan.has_turns) text += ", threads take turns";
  if (plan.mistake) text += ", " + describe(*plan.mistake);
  for (const Fault& fault : plan.faults) text += ", " + describe(fault);
  for (const int rank : plan.newcomers) text += fmt::format(", another {} joins", rank);
  for (const auto& renewal : plan.renewals) {
    text += ", renews";
    for (const Fault& fault : renewal) text += ", " + describe(fault);
  }
  return text;
}

}  // namespace col::test

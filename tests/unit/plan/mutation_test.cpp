// Plants faults into the plans of every algorithm that verify() accepts, and asks it to find each one.
#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "mutations.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

// "round 2, rank 3: …" or "after the last round, rank 3, …", of the rank and round that the verdict names.
bool says_where(const Verdict& verdict, int size) {
  if (verdict.rank < 0 || verdict.rank >= size) return false;
  const std::string during = fmt::format("round {}, rank {}: ", verdict.round, verdict.rank);
  const std::string after = fmt::format("after the last round, rank {}", verdict.rank);
  return verdict.problem.rfind(during, 0) == 0 || verdict.problem.rfind(after, 0) == 0;
}

struct Place {
  int rank;
  std::size_t round, step;
};

std::vector<Place> places_in(const PlanProblem& problem, const PlanOfRank& plans) {
  std::vector<Place> places;
  for (int rank = 0; rank < problem.size(); ++rank) {
    const Plan plan = plans(rank);
    Round round;
    for (std::size_t index = 0; index < plan.rounds; ++index) {
      plan.round(index, round);
      for (std::size_t step = 0; step < round.steps().size(); ++step) places.push_back({rank, index, step});
    }
  }
  return places;
}

// Faults of every kind at some places of one good plan; says how many of which kind were planted.
class Planter {
 public:
  explicit Planter(std::uint32_t seed) : random_(seed) {}

  void plant_into(const Algorithm& algorithm, const PlanProblem& problem) {
    const PlanOfRank plans = plans_of(algorithm, problem);
    std::vector<Place> places = places_in(problem, plans);
    std::shuffle(places.begin(), places.end(), random_);
    for (const test::Mutation& mutation : test::mutations()) {
      int planted = 0;
      for (const Place& place : places) {
        if (planted == 4) break;
        const Plan plan = plans(place.rank);
        Round round;
        plan.round(place.round, round);
        std::vector<Step> steps(round.steps().begin(), round.steps().end());
        const test::Victim victim{problem, algorithm.order, place.rank, plan, random_};
        if (!mutation.suits(steps[place.step]) || is_read_by_nobody(algorithm, problem, place)) continue;
        if (!mutation.plant(victim, steps, place.step)) continue;
        ++planted;
        ++planted_[mutation.name];
        check(algorithm, problem, mutation, place,
              verify(problem, test::with_round(plans, place.rank, place.round, steps)));
      }
    }
  }

  int planted(std::string_view name) const {
    const auto found = planted_.find(name);
    return found == planted_.end() ? 0 : found->second;
  }

 private:
  // What the last rank of a scan has is for itself alone; where all inputs are exchanged, it goes out all the same.
  static bool is_read_by_nobody(const Algorithm& algorithm, const PlanProblem& problem, const Place& place) {
    const bool scans = algorithm.collective == Collective::scan || algorithm.collective == Collective::exscan;
    return scans && algorithm.name == "two_level_ordered" && place.rank == problem.size() - 1;
  }
  void check(const Algorithm& algorithm, const PlanProblem& problem, const test::Mutation& mutation, const Place& place,
             const Verdict& verdict) {
    const bool found = !verdict.good || verdict.order < algorithm.order;
    if (found && (verdict.good || says_where(verdict, problem.size()))) return;
    FAIL_CHECK(test::describe(algorithm, problem.spec())
               << ": " << mutation.name << " (rank " << place.rank << ", round " << place.round << ", step "
               << place.step << "): " << (found ? verdict.problem : "not found"));
  }

  std::mt19937 random_;
  std::map<std::string_view, int> planted_;
};

}  // namespace

TEST_CASE("a fault planted into a good plan is found and named", "[plan]") {
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Planter planter(seed);
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {2, 4, 5, 7}) {
      for (const test::Mode& mode : test::modes_of(algorithm.collective)) {
        const auto root = static_cast<int>(random() % static_cast<unsigned>(size));
        const std::size_t what = row_of(algorithm.collective).has_counts() ? 3 : 23;
        PlanProblem::Spec spec = test::spec_of(algorithm.collective, size, root, what, mode, random);
        if (test::needs_nodes(algorithm)) {
          for (int rank = 0; rank < size; ++rank) spec.node_of_rank.push_back(rank / 2);
          // A block of one element has copies of it beside it: what reads them makes no mistake.
          // Of pairs of ranks, both have as many, as in place they must.
          const auto ranks = static_cast<std::size_t>(size);
          for (std::size_t i = 0; i < spec.counts.size(); ++i)
            spec.counts[i] = std::max(i, i % ranks * ranks + i / ranks) + 3;
        }
        const PlanProblem problem(std::move(spec));
        if (algorithm.refuse(problem.request(0))) continue;
        planter.plant_into(algorithm, problem);
      }
    }
  }
  for (const test::Mutation& mutation : test::mutations()) {
    INFO(mutation.name);
    CHECK(planter.planted(mutation.name) >= 10);
  }
}

// A later message to the same rank goes first, with what it says at that time.
TEST_CASE("two messages to one rank that change places are found", "[plan]") {
  int planted = 0;
  for (const Algorithm& algorithm : algorithms()) {
    PlanProblem::Spec spec{.collective = algorithm.collective, .size = 5, .count = 23, .parameters = {.segment = 4}};
    if (row_of(spec.collective).has_counts()) continue;  // the same plans
    const PlanProblem problem(spec);
    if (algorithm.refuse(problem.request(0))) continue;
    const PlanOfRank plans = plans_of(algorithm, problem);
    const std::vector<Place> places = places_in(problem, plans);
    const auto steps_of = [&](const Place& place) {
      Round round;
      plans(place.rank).round(place.round, round);
      return std::vector<Step>(round.steps().begin(), round.steps().end());
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::vector<Step> first = steps_of(places[i]);
      const Step early = first[places[i].step];
      if (early.kind != Step::Kind::send) continue;
      for (std::size_t k = i + 1; k < places.size() && places[k].rank == places[i].rank; ++k) {
        std::vector<Step> second = steps_of(places[k]);
        const Step late = second[places[k].step];
        if (late.kind != Step::Kind::send || late.peer != early.peer) continue;
        if (late.left == early.left) break;  // the same words, of another time
        first[places[i].step].left = late.left;
        if (places[k].round == places[i].round)
          first[places[k].step].left = early.left;
        else
          second[places[k].step].left = early.left;
        PlanOfRank bad = test::with_round(plans, places[i].rank, places[i].round, first);
        if (places[k].round != places[i].round) bad = test::with_round(bad, places[k].rank, places[k].round, second);
        const Verdict verdict = verify(problem, bad);
        ++planted;
        INFO(test::describe(algorithm, spec) << ", rank " << places[i].rank << ", rounds " << places[i].round << " and "
                                             << places[k].round << ": " << verdict.problem);
        CHECK_FALSE(verdict.good);
        CHECK(says_where(verdict, spec.size));
        break;
      }
    }
  }
  CHECK(planted >= 10);
}

// All ranks first send and then receive, in rounds of their own.
TEST_CASE("sends before receives all around a ring get stuck", "[plan]") {
  for (const auto& [collective, name] : {std::pair{Collective::allreduce, "ring"},
                                         {Collective::allgather, "ring"},
                                         {Collective::reduce_scatter, "ring"}}) {
    const PlanProblem problem({.collective = collective, .size = 5, .count = 11});
    const PlanOfRank plans = plans_of(test::algorithm(collective, name), problem);
    const Verdict verdict = verify(problem, [&](int rank) {
      Plan plan = plans(rank);
      plan.rounds *= 2;
      plan.generate = [generate = plan.generate](std::size_t index, Round& out) {
        Round whole;
        generate(index / 2, whole);
        for (const Step& step : whole.steps()) {
          if ((step.kind == Step::Kind::send) == (index % 2 == 0)) out.add(step);
        }
      };
      return plan;
    });
    CHECK_FALSE(verdict.good);
    CHECK(verdict.round == 0);
    CHECK(verdict.problem.find("deadlock") != std::string::npos);
    CHECK(says_where(verdict, 5));
  }
}

}  // namespace col

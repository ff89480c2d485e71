// Order::tree in plans: the verifier knows the tree, each algorithm that keeps it does so for all shares, and what that
// costs on the wire.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "plan/tree_order.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

std::vector<const Algorithm*> keepers() {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.keeps_tree) found.push_back(&algorithm);
  }
  return found;
}

// `total` contributions cut at random: ranks that give nothing are as likely as others.
std::vector<std::size_t> drawn_shares(int ranks, std::size_t total, std::mt19937& random) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(ranks), 0);
  const std::size_t chosen = 1 + random() % shares.size();
  for (std::size_t i = 0; i < total; ++i) ++shares[random() % chosen];
  std::shuffle(shares.begin(), shares.end(), random);
  return shares;
}

std::vector<std::size_t> even_shares(int ranks, std::size_t total) {
  const plan::Blocks blocks = plan::Blocks::even(total, static_cast<std::size_t>(ranks));
  std::vector<std::size_t> shares;
  for (std::size_t r = 0; r < blocks.parts(); ++r) shares.push_back(blocks.count(r));
  return shares;
}

PlanProblem::Spec spec_of(std::vector<std::size_t> shares, std::size_t count) {
  return {.collective = Collective::allreduce,
          .size = static_cast<int>(shares.size()),
          .count = count,
          .contributions = std::move(shares)};
}

// Any root and count, or blocks of any shape.
PlanProblem::Spec any_spec_of(const Algorithm& algorithm, int ranks, const test::Mode& mode, std::mt19937& random) {
  const int root = row_of(algorithm.collective).rooted ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : 0;
  const std::size_t what = random() % (row_of(algorithm.collective).has_counts() ? test::kBlockShapes : 23);
  return test::spec_of(algorithm.collective, ranks, root, what, mode, random);
}

TEST_CASE("tree: every algorithm that says so combines contributions in the tree's order", "[plan]") {
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  REQUIRE(keepers().size() >= 5);
  for (const Algorithm* algorithm : keepers()) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (std::size_t total = 1; total <= 40; ++total) {
        for (const test::Mode& mode : test::modes_of(algorithm->collective)) {
          PlanProblem::Spec spec = any_spec_of(*algorithm, ranks, mode, random);
          spec.contributions = drawn_shares(ranks, total, random);
          const PlanProblem problem(spec);
          const Verdict verdict = verify(problem, plans_of(*algorithm, problem));
          INFO(test::describe(*algorithm, spec) << ", shares " << fmt::format("{}", spec.contributions));
          if (!verdict.good) FAIL_CHECK(verdict.problem);
          for (int rank = 0; rank < ranks; ++rank)
            REQUIRE(algorithm->build(problem.request(rank)).contributions == total);
        }
      }
    }
  }
}

TEST_CASE("tree: a long local part is folded in pieces, and keeps the order", "[plan]") {
  for (const Algorithm* algorithm : keepers()) {
    for (const std::size_t count : {4096u, 4097u, 10000u}) {
      PlanProblem::Spec spec = spec_of({5, 0, 7, 1}, count);
      spec.collective = algorithm->collective;
      if (row_of(spec.collective).has_counts()) spec.counts = {count, 1, 0, count};
      const PlanProblem problem(spec);
      const Verdict verdict = verify(problem, plans_of(*algorithm, problem));
      INFO(algorithm->name << ", " << count << ": " << verdict.problem);
      CHECK(verdict.good);
    }
  }
}

TEST_CASE("tree: the verifier refuses every other order", "[plan]") {
  // The left fold of four is no tree; that of three is one.
  const Algorithm& direct = test::algorithm(Collective::allreduce, "direct");
  const auto in_rank_order = [&](int ranks) {
    const PlanProblem problem(spec_of(std::vector<std::size_t>(static_cast<std::size_t>(ranks), 1), 8));
    return verify(problem, [&](int rank) {
      PlanRequest request = problem.request(rank);
      request.contributions = {};
      return direct.build(request);
    });
  };
  CHECK(in_rank_order(3).good);
  const Verdict verdict = in_rank_order(4);
  CHECK_FALSE(verdict.good);
  CHECK(verdict.problem.find("in another order than the tree's") != std::string::npos);

  // A tree over ranks instead of contributions: each rank first folds all that it gives.
  const PlanProblem problem(spec_of({1, 2}, 1));
  const auto over_ranks = [](int rank) {
    Plan plan{.rounds = 2, .wide = 2, .contributions = 3};
    plan.generate = [rank](std::size_t index, Round& round) {
      const Slice one{Buffer::input, 0, 1}, folded{Buffer::wide, 0, 1}, theirs{Buffer::wide, 1, 1},
          out{Buffer::output, 0, 1};
      if (index == 0 && rank == 1) round.reduce(folded, one, {Buffer::input, 1, 1});
      if (index == 0) return;
      const Slice own = rank == 1 ? folded : one;
      round.send(1 - rank, own);
      round.recv(1 - rank, theirs);
      round.reduce(out, rank == 0 ? own : theirs, rank == 0 ? theirs : own);
      round.convert(out, out);
    };
    return plan;
  };
  const Verdict of_ranks = verify(problem, over_ranks);
  CHECK_FALSE(of_ranks.good);
  CHECK(of_ranks.problem.find("in another order than the tree's") != std::string::npos);
}

TEST_CASE("tree: the verifier names a contribution that is missing", "[plan]") {
  const PlanProblem problem(spec_of({2, 1}, 1));
  const Algorithm& direct = test::algorithm(Collective::allreduce, "direct");
  const PlanProblem other(spec_of({1, 1}, 1));
  const Verdict verdict = verify(problem, [&](int rank) { return direct.build(other.request(rank)); });
  CHECK_FALSE(verdict.good);
  CHECK(verdict.problem.find("contribution 1 is missing") != std::string::npos);
}

TEST_CASE("tree: contributions that make no problem are refused", "[plan]") {
  CHECK_THROWS_AS(PlanProblem(spec_of({0, 0}, 1)), Error);
  PlanProblem::Spec spec = spec_of({1, 1}, 1);
  spec.size = 3;
  CHECK_THROWS_AS(PlanProblem(spec), Error);
  spec = spec_of({1, 1}, 1);
  spec.collective = Collective::scan;
  CHECK_THROWS_AS(PlanProblem(spec), Error);
}

// The elements that `direct` sends in all, as a multiple of the same without contributions.
double bytes_of_direct(const std::vector<std::size_t>& shares) {
  const Algorithm& direct = test::algorithm(Collective::allreduce, "direct");
  const auto sent = [&](PlanProblem::Spec spec) {
    const PlanProblem problem(std::move(spec));
    const Verdict verdict = verify(problem, plans_of(direct, problem));
    INFO(verdict.problem);
    REQUIRE(verdict.good);
    return static_cast<double>(verdict.elements_sent);
  };
  PlanProblem::Spec plain = spec_of(shares, 5040);
  plain.contributions.clear();
  return sent(spec_of(shares, 5040)) / sent(plain);
}

TEST_CASE("tree: shares that are nodes of the tree cost no bytes, others a known number", "[plan]") {
  for (const int ranks : {2, 4, 8}) CHECK(bytes_of_direct(even_shares(ranks, 64)) == 1.0);
  for (const int ranks : {3, 6, 12}) CHECK(bytes_of_direct(even_shares(ranks, 96)) == 1.0);
  for (const int ranks : {2, 3, 5, 7, 9})
    CHECK(bytes_of_direct(even_shares(ranks, static_cast<std::size_t>(ranks))) == 1.0);
  // One block for each subtree of a rank on the way there, and one on the way back.
  const auto expected = [](const std::vector<std::size_t>& shares) {
    const PlanProblem problem(spec_of(shares, 1));
    double subtrees = 0;
    for (const auto& of_rank : plan::subtrees_of(problem.request(0))) subtrees += static_cast<double>(of_rank.size());
    return (subtrees / static_cast<double>(shares.size()) + 1) / 2;
  };
  for (const int ranks : {3, 6, 12})
    CHECK(bytes_of_direct(even_shares(ranks, 64)) == Catch::Approx(expected(even_shares(ranks, 64))));
  CHECK(bytes_of_direct(even_shares(3, 64)) < 2.35);
  CHECK(bytes_of_direct(even_shares(6, 1024)) < 3.85);
}

}  // namespace
}  // namespace col

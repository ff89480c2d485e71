// Random programs: many different collectives and messages with nothing in between, those that are asynchronous waited
// for at other times and in another order on each rank. And what a barrier is for.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "conformance/table/call.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using namespace col::test;

constexpr int kRanks = 4;
constexpr std::size_t kLength = 300;

Case random_case(std::mt19937_64& random, std::size_t number) {
  const auto below = [&](auto limit) { return static_cast<int>(random() % static_cast<std::uint64_t>(limit)); };
  Case c;
  c.seed = random();
  c.primitive = static_cast<Primitive>(below(kPrimitiveCount));
  c.dtype = static_cast<col::DType>(below(col::kDTypeCount));
  do {
    c.op = static_cast<Operator>(below(kOperatorCount));
  } while (!is_defined(c.op, c.dtype));
  if (c.primitive != Primitive::barrier) c.count = count_of(below(kCountClasses), kRanks, c.seed);
  if (is_rooted(c.primitive)) c.root = below(kRanks);
  c.in_place = has_in_place(c.primitive) && below(2) == 0;
  c.asynchronous = has_i_form(c.primitive) && below(3) > 0;
  c.tag = tag_of(c.primitive, number);
  const auto able = candidates(c, kRanks);
  if (below(2) == 0 && !able.empty()) c.algorithm = able[random() % able.size()]->name;
  return c;
}

class Program {
 public:
  Program(col::Group group, std::uint64_t seed, int rank)
      : group_(std::move(group)), common_(seed), own_(mix(seed, static_cast<std::uint64_t>(rank))) {}

  void run() {
    for (std::size_t i = 0; i < kLength; ++i) {
      const Case c = random_case(common_, i);
      open_.push_back(std::make_unique<Call>(group_, c));
      open_.back()->start();
      if (!c.asynchronous) end(open_.size() - 1);
      while (!open_.empty() && own_() % 3 == 0) end(own_() % open_.size());
    }
    while (!open_.empty()) end(own_() % open_.size());
  }

 private:
  void end(std::size_t index) {
    std::swap(open_[index], open_.back());
    open_.back()->wait();
    const std::string problem = open_.back()->problem();
    expect(problem.empty(), problem);
    open_.pop_back();
  }

  col::Group group_;
  std::mt19937_64 common_, own_;
  std::vector<std::unique_ptr<Call>> open_;
};

}  // namespace

TEST_CASE("program: collectives back to back, waited for in other orders on each rank", "[table]") {
  for (const std::string& backend : usable_backends()) {
    for (const std::uint64_t seed : {std::uint64_t{20261121}, fresh_seed()}) {
      fmt::print("random program on {}: seed {:#x}\n", backend, seed);
      const auto outcomes = run_threads(kRanks, [&](int rank, col::Context& context) {
        Program(context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend}), seed, rank).run();
      });
      INFO(fmt::format("{}, seed {:#x}\n{}", backend, seed, show(outcomes)));
      CHECK(all_good(outcomes));
    }
  }
}

TEST_CASE("barrier: no rank leaves before the last has entered", "[table]") {
  constexpr int kRounds = 20;
  for (const std::string& backend : usable_backends()) {
    std::vector<std::string> algorithms = {""};
    for (const col::Algorithm& algorithm : col::algorithms()) {
      if (algorithm.collective == col::Collective::barrier) algorithms.emplace_back(algorithm.name);
    }
    std::atomic<int> entered = 0;
    const auto outcomes = run_threads(kRanks, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend});
      int all = 0;
      for (const std::string& algorithm : algorithms) {
        for (int round = 0; round < kRounds; ++round) {
          entered.fetch_add(1);
          all += kRanks;
          if (round % 2 == 0)
            group.barrier({.algorithm = algorithm});
          else
            group.ibarrier({.algorithm = algorithm}).wait();
          expect(entered.load() >= all, fmt::format("'{}': {} of {} had entered", algorithm, entered.load(), all));
        }
      }
    });
    INFO(backend << "\n" << show(outcomes));
    CHECK(all_good(outcomes));
  }
}

// Ranks that make different calls, and do not wait for them at once.
#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::Outcome;
using namespace std::chrono_literals;

namespace {

constexpr int kMismatchingRanks = 4;
constexpr int kOddRank = 2;

struct Case {
  std::string what;
  std::function<void(Group& group, Group& other, bool odd)> play;
};

// Buffers of the length that is called for; the odd rank's first one is longer.
struct Vectors {
  explicit Vectors(bool odd) : in(odd ? 9 : 8, 1), out(in.size()), next(1000, 1) {}
  std::vector<int> in, out, next;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"the next call is the same on all ranks",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         Work work = group.iallreduce(v.in, v.out);
         group.allreduce(v.next);
         work.wait();
       }},
      {"tested again and again",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         Work work = group.iallreduce(v.in, v.out);
         while (!work.test()) continue;
       }},
      {"waited for a little at a time",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         Work work = group.iallreduce(v.in, v.out);
         while (!work.wait_for(5ms)) continue;
       }},
      {"dropped before a barrier",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         std::ignore = group.iallreduce(v.in, v.out);
         group.barrier();
       }},
      {"dropped before the group is left",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         std::ignore = group.iallreduce(v.in, v.out);
         group.destroy();
       }},
      {"many calls later",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         std::vector<std::vector<int>> more(50);
         std::vector<Work> works = {group.iallreduce(v.in, v.out)};
         for (std::size_t i = 0; i < more.size(); ++i) {
           more[i].assign(i + 1, 1);
           works.push_back(group.ibroadcast(more[i], {.root = static_cast<int>(i) % kMismatchingRanks}));
         }
         for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
       }},
      {"waited for by the odd rank, while the others are in another group",
       [](Group& group, Group& other, bool odd) {
         Vectors v(odd);
         Work work = group.iallreduce(v.in, v.out);
         if (odd) work.wait();
         other.allreduce(v.next);
         work.wait();
       }},
      {"with a reduction of the user's that has a strange name",
       [](Group& group, Group&, bool odd) {
         Vectors v(odd);
         const auto add = [](const void* left, const void* right, void* result, std::size_t count, col::DType) {
           for (std::size_t i = 0; i < count; ++i)
             static_cast<int*>(result)[i] = static_cast<const int*>(left)[i] + static_cast<const int*>(right)[i];
         };
         const col::Op op = col::Op::user(add, true, "\xff\xfe\n");
         Work work = group.iallreduce(v.in, v.out, {.op = op});
         group.allreduce(v.next, {.op = op});
         work.wait();
       }},
  };
  return list;
}

std::vector<Outcome> run(const std::string& backend, const std::function<void(Group&, Group&, bool)>& play) {
  return col::test::run_threads(kMismatchingRanks, [&](int rank, col::Context& context) {
    const auto join = [&](const char* name) {
      return context.init_group({.name = name, .rank = rank, .world_size = kMismatchingRanks, .backend_name = backend});
    };
    Group group = join("default"), other = join("other");
    play(group, other, rank == kOddRank);
    context.finalize();
  });
}

// At least one rank is told, and nobody is told anything else.
void check_somebody_says(const std::vector<Outcome>& outcomes, const std::string& words) {
  INFO(col::test::show(outcomes));
  int told = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.good) continue;
    ++told;
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank == kOddRank);
    CHECK(outcome.text.find(words) != std::string::npos);
  }
  CHECK(told > 0);
}

}  // namespace

TEST_CASE("in flight: the first call that differs is named on every rank, whatever they wait for", "[group][async]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const Case& c : cases()) {
      const auto outcomes = run(backend, c.play);
      INFO(backend << ": " << c.what << "\n" << col::test::show(outcomes));
      for (const Outcome& outcome : outcomes) {
        CHECK(outcome.code == ErrorCode::mismatch);
        CHECK(outcome.error_rank == kOddRank);
        CHECK(outcome.text.find("rank 2 called iallreduce of 9 int32") != std::string::npos);
        CHECK(outcome.seconds < 10);  // within a second on a quiet machine
      }
    }
  }
}

TEST_CASE("in flight: a difference in the last call is told when the group is left", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    INFO(backend);
    check_somebody_says(run(backend,
                            [](Group& group, Group&, bool odd) {
                              std::vector<int> data(8);
                              group.broadcast(data, {.root = odd ? kOddRank : 0});
                            }),
                        "root 2");
    check_somebody_says(run(backend,
                            [](Group& group, Group&, bool odd) {
                              std::vector<int> data(8);
                              group.allreduce(data);
                              if (!odd) group.allreduce(data);
                            }),
                        "rank 2 called nothing more, and left the group");
    check_somebody_says(run(backend,
                            [](Group& group, Group&, bool odd) {
                              std::vector<int> data(8);
                              group.allreduce(data);
                              if (odd) group.allreduce(data);
                            }),
                        "ranks 0, 1, 3 called nothing more, and left the group");
  }
}

TEST_CASE("in flight: ranks that leave a group as soon as they can are told nothing", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = run(backend, [](Group& group, Group& other, bool) {
      std::vector<int> data(8);
      const int rank = group.rank();
      std::array<std::size_t, kMismatchingRanks> counts = {1, 2, 3, 4};
      std::vector<int> all(10);
      group.broadcast(data, {.root = 1});
      // Lists that the root alone has.
      group.gatherv(std::span(data).first(counts[static_cast<std::size_t>(rank)]), all,
                    std::span<const std::size_t>(counts).first(rank == 3 ? counts.size() : 0), {.root = 3});
      for (int i = 0; i < 200; ++i) other.broadcast(std::span(data).first(1 + static_cast<std::size_t>(i) % 8));
      group.destroy();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("in flight: who leaves because of an error tells it in its other groups", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = run(backend, [](Group& group, Group& other, bool odd) {
      std::vector<int> data(8);
      if (group.rank() == 0)
        other.allreduce(data);  // where nobody else comes
      else
        group.reduce(std::span(data).first(odd ? 7 : 8), {.root = 1});
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[0].code == ErrorCode::mismatch);
    CHECK(outcomes[0].text.find("after an error of group 'default'") != std::string::npos);
  }
}

// Ranks that make different calls: compared before any data moves (COL_CHECK=strict), and found while nobody waits.
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// ---- COL_CHECK=strict

constexpr int kMismatchingRanks = 4;
constexpr int kOddRank = 2;

struct OddCall {
  std::string what;
  std::function<void(Group&, const std::vector<int>& in, std::vector<int>& out, bool odd)> make;
};

const std::vector<OddCall>& odd_calls() {
  static const std::vector<OddCall> calls = {
      {"collective", [](Group& group, const auto& in, auto& out,
                        bool odd) { odd ? group.reduce(in, out) : group.allreduce(in, out); }},
      {"count",
       [](Group& group, const auto& in, auto& out, bool odd) {
         const std::size_t count = odd ? in.size() - 1 : in.size();
         group.allreduce(ConstTensorView(in).slice(0, count), TensorView(out).slice(0, count));
       }},
      {"dtype",
       [](Group& group, const auto& in, auto& out, bool odd) {
         const DType dtype = odd ? DType::uint32 : DType::int32;
         group.allreduce(ConstTensorView(in.data(), in.size(), dtype), TensorView(out.data(), out.size(), dtype));
       }},
      {"root", [](Group& group, const auto&, auto& out, bool odd) { group.broadcast(out, {.root = odd ? 1 : 0}); }},
      {"reduce op", [](Group& group, const auto& in, auto& out,
                       bool odd) { group.allreduce(in, out, {.op = odd ? ReduceOp::max : ReduceOp::sum}); }},
      {"algorithm", [](Group& group, const auto& in, auto& out,
                       bool odd) { group.allreduce(in, out, {.algorithm = odd ? "mst" : "ring"}); }},
      {"i-form", [](Group& group, const auto& in, auto& out,
                    bool odd) { odd ? group.iallreduce(in, out).wait() : group.allreduce(in, out); }},
  };
  return calls;
}

TEST_CASE("check: strict finds every difference before an output is touched, and names the odd rank", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  for (const OddCall& call : odd_calls()) {
    INFO("another " << call.what);
    const Judge judge = all_end({.code = ErrorCode::mismatch, .rank = kOddRank, .promptly = true});
    threads_on_each_backend(kMismatchingRanks, judge, [&](Group& group) {
      const std::vector<int> in(1000, group.rank()), untouched(in.size(), -99);
      std::vector<int> out = untouched;
      try {
        call.make(group, in, out, group.rank() == kOddRank);
      } catch (const Error&) {
        expect(out == untouched, "the output was touched");
        throw;
      }
    });
  }
}

TEST_CASE("check: strict finds it also where the call itself would not wait", "[group]") {
  // A small broadcast from rank 0 ends there at once: without strict, rank 0 would be gone before anybody looks.
  const Setting setting("COL_CHECK", "strict");
  processes_on_each_backend(3, all_end({.code = ErrorCode::mismatch, .rank = 1}), [](Group& group) {
    std::vector<int> data(group.rank() == 1 ? 2u : 1u);
    group.broadcast(data);
  });
}

// Two keys per rank: of the call that it is in, and of the one before.
void expect_few_keys(Group& group, Context& context) {
  std::size_t at_start = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<int> data(10, 1);
    group.allreduce(data);
    expect(data.back() == 3);
    if (i == 5) at_start = context.spec().store->num_keys();
  }
  const std::size_t at_end = context.spec().store->num_keys();
  expect(at_end <= at_start + 6, fmt::format("{} keys, then {}", at_start, at_end));
}

TEST_CASE("check: strict lets matched programs run, and the store does not grow", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  threads_on_each_backend(3, [](Group& group, Context& context) {
    expect_few_keys(group, context);
    fly_each_kind(group, 50);
  });
  processes_on_each_backend(3, expect_few_keys);  // over a store of files
}

TEST_CASE("check: strict leaves no more keys behind with every group that is made", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  threads_on_each_backend(2, [](int rank, Context& context, const std::string& backend) {
    std::size_t at_start = 0;
    for (int i = 0; i < 20; ++i) {
      Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      group.barrier();
      if (i == 3) at_start = context.spec().store->num_keys();
      context.destroy_group("default");
    }
    const std::size_t at_end = context.spec().store->num_keys();
    expect(at_end <= at_start + 10, fmt::format("{} keys, then {}", at_start, at_end));
  });
}

// ---- Calls in flight

using TwoGroupBody = std::function<void(Group& group, Group& other, bool odd)>;

// What follows a first call that differs: `first` is under way, and `next` the same on all ranks.
struct MismatchCase {
  std::string what;
  std::function<void(Group& group, Group& other, bool odd, Work& first, std::vector<int>& next)> go_on;
  Op op = ReduceOp::sum;
};

std::vector<MismatchCase> cases() {
  return {
      {"the next call is the same on all ranks",
       [](Group& group, Group&, bool, Work& first, auto& next) {
         group.allreduce(next);
         first.wait();
       }},
      {"tested again and again",
       [](Group&, Group&, bool, Work& first, auto&) {
         while (!first.test()) continue;
       }},
      {"waited for a little at a time",
       [](Group&, Group&, bool, Work& first, auto&) {
         while (!first.wait_for(5ms)) continue;
       }},
      {"dropped before a barrier",
       [](Group& group, Group&, bool, Work& first, auto&) {
         first = {};
         group.barrier();
       }},
      {"dropped before the group is left",
       [](Group& group, Group&, bool, Work& first, auto&) {
         first = {};
         group.destroy();
       }},
      {"many calls later",
       [](Group& group, Group&, bool, Work& first, auto&) {
         std::vector<std::vector<int>> more(50);
         std::vector<Work> works = {first};
         for (std::size_t i = 0; i < more.size(); ++i) {
           more[i].assign(i + 1, 1);
           works.push_back(group.ibroadcast(more[i], {.root = static_cast<int>(i) % kMismatchingRanks}));
         }
         for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
       }},
      {"waited for by the odd rank, while the others are in another group",
       [](Group&, Group& other, bool odd, Work& first, auto& next) {
         if (odd) first.wait();
         other.allreduce(next);
         first.wait();
       }},
      {"with a reduction of the user's that has a strange name",
       [](Group& group, Group&, bool, Work& first, auto& next) {
         group.allreduce(next, {.op = Op::user(add_as<int>, true, "\xff\xfe\n")});
         first.wait();
       },
       Op::user(add_as<int>, true, "\xff\xfe\n")},
  };
}

void play_on_each_backend(const Judge& judge, const TwoGroupBody& play) {
  threads_on_each_backend(kMismatchingRanks, judge, [&](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    play(group, other, group.rank() == kOddRank);
    context.finalize();
  });
}

// At least one rank is told, and nobody is told anything else.
Judge somebody_says(const std::string& words) {
  return [words](const std::vector<Outcome>& outcomes) {
    CHECK(!all_good(outcomes));
    for (const Outcome& outcome : outcomes) {
      if (!outcome.good) check_ending(outcome, {.code = ErrorCode::mismatch, .rank = kOddRank, .says = words});
    }
  };
}

TEST_CASE("in flight: the first call that differs is named on every rank, whatever they wait for", "[group][async]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch,
                               .rank = kOddRank,
                               .says = "rank 2 called iallreduce of 9 int32",
                               .promptly = true});  // within a second on a quiet machine
  for (const MismatchCase& c : cases()) {
    INFO(c.what);
    // They outlive the contexts: an error of the other group may leave the first call under way.
    std::array<std::array<std::vector<int>, 3>, kMismatchingRanks> buffers;
    play_on_each_backend(judge, [&](Group& group, Group& other, bool odd) {
      auto& [in, out, next] = buffers[static_cast<std::size_t>(group.rank())];
      in.assign(odd ? 9 : 8, 1);
      out.assign(in.size(), 0);
      next.assign(1000, 1);
      Work first = group.iallreduce(in, out, {.op = c.op});
      c.go_on(group, other, odd, first, next);
    });
  }
}

TEST_CASE("in flight: a message that does not fit is told, whatever is waited for", "[group][async]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch, .says = "rank 1 sent 16 bytes"});
  for (const int awaited : {1, 0}) {  // 0: which may be on the receiver's host, and then comes another way
    INFO("rank 2 waits for rank " << awaited);
    threads_on_each_backend(3, judge, [&](Group& group) {
      const std::vector<int> four(4);
      std::vector<int> small(2), larger(4);
      if (group.rank() == 2) {
        Work first = group.irecv(small, 1), second = group.irecv(larger, awaited);
        group.barrier();
        second.wait();
      } else {
        group.barrier();
        if (group.rank() == 1) group.send(four, 2);
        group.recv(small, 2);  // which nobody sends
      }
    });
  }
}

std::string left_key(const Group& group, int rank) {
  return fmt::format("has left over {}/{}", group.backend(), rank);
}

void leave_and_say_so(Group& group) {
  const std::string key = left_key(group, group.rank());
  group.destroy();
  Context::current().spec().store->set(key, "");
}

TEST_CASE("in flight: a difference in the last call is told when the group is left", "[group]") {
  play_on_each_backend(somebody_says("root 2"), [](Group& group, Group&, bool odd) {
    std::vector<int> data(8);
    group.broadcast(data, {.root = odd ? kOddRank : 0});
  });
  for (const bool odd_leaves : {true, false}) {
    const char* const who = odd_leaves ? "rank 2" : "ranks 0, 1, 3";
    const Judge judge = somebody_says(fmt::format("{} called nothing more, and left the group", who));
    play_on_each_backend(judge, [&](Group& group, Group&, bool odd) {
      std::vector<int> data(8);
      group.allreduce(data);
      if (odd == odd_leaves) return leave_and_say_so(group);
      // All have left before the first of them is missed: else those who are about to leave count as well.
      for (int rank = 0; rank < kMismatchingRanks; ++rank) {
        if ((rank == kOddRank) == odd_leaves)
          Context::current().spec().store->wait_for(left_key(group, rank), kDeadline);
      }
      group.allreduce(data);
    });
  }
}

TEST_CASE("in flight: ranks that leave a group as soon as they can are told nothing", "[group]") {
  play_on_each_backend(check_good, [](Group& group, Group& other, bool) {
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
}

TEST_CASE("in flight: who leaves because of an error tells it in its other groups", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    check_ending(outcomes[0], {.code = ErrorCode::mismatch, .says = "after an error of group 'default'"});
  };
  play_on_each_backend(judge, [](Group& group, Group& other, bool odd) {
    std::vector<int> data(8);
    if (group.rank() == 0)
      other.allreduce(data);  // where nobody else comes
    else
      group.reduce(std::span(data).first(odd ? 7 : 8), {.root = 1});
  });
}

// Rank 2 makes one call too few of this group, and nothing else is wrong with it.
void leave_too_early(Group& group, bool odd) {
  std::vector<int> data(8);
  group.allreduce(data);
  if (!odd) group.allreduce(data);
}

TEST_CASE("in flight: an error after which a rank has gone on is not why it leaves", "[group]") {
  const Judge judge = somebody_says("rank 2 called nothing more, and left the group");
  for (const bool destroys : {true, false}) {
    INFO((destroys ? "the broken group is destroyed" : "the broken group stays"));
    play_on_each_backend(judge, [&](Group& group, Group& other, bool odd) {
      std::vector<int> data(8);
      expect_error(ErrorCode::mismatch, "", [&] { other.allreduce(std::span(data).first(odd ? 7 : 8)); });
      if (destroys) other.destroy();
      leave_too_early(group, odd);
    });
  }
}

TEST_CASE("in flight: an error before a group was made is not why a rank leaves that", "[group]") {
  const Judge judge = somebody_says("rank 2 called nothing more, and left the group");
  play_on_each_backend(judge, [&](Group& group, Group& other, bool odd) {
    std::vector<int> data(8);
    expect_error(ErrorCode::mismatch, "", [&] { other.allreduce(std::span(data).first(odd ? 7 : 8)); });
    Group later = group.dup();
    other.destroy();
    leave_too_early(later, odd);
    later.destroy();
  });
}

}  // namespace
}  // namespace col::test

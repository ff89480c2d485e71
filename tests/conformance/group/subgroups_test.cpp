// Groups made from others: who is in them, in which order, and that they keep to themselves.
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// The ranks that its members have in `parent`, in its order: what they tell each other through it.
std::vector<int> members(Group& group, const Group& parent) {
  return group.allgather_object(parent.rank());
}

void expect_no_group(Group& group) {
  expect(!group);
  const auto is_none = [](const auto& call) { expect_error(ErrorCode::not_initialized, "", call); };
  std::vector<int> data(3);
  is_none([&] { (void)group.rank(); });
  is_none([&] { (void)group.size(); });
  is_none([&] { (void)group.name(); });
  is_none([&] { (void)group.backend(); });
  is_none([&] { group.allreduce(data); });
  is_none([&] { std::ignore = group.iallreduce(data, data); });
  is_none([&] { group.send(data, 0); });
  is_none([&] { std::ignore = group.irecv(data, 0); });
  is_none([&] { group.barrier(); });
  is_none([&] { group.split(0); });
  is_none([&] { group.subgroup(std::array{0}, "more"); });
  is_none([&] { group.dup(); });
  is_none([&] { group.shrink(std::array{0}); });
  is_none([&] { group.broadcast_object(data); });
  is_none([&] { group.record_trace(true); });
  is_none([&] { (void)group.trace(); });
  is_none([&] { (void)group.explain(Collective::allreduce, 10); });
}

TEST_CASE("subgroups: no group is false, and every call on it says so", "[group]") {
  Group none;
  expect_no_group(none);
}

TEST_CASE("subgroups: split by color, ordered by key and then by rank", "[group]") {
  threads_on_each_backend(6, [](Group& group) {
    const int me = group.rank();
    // Colors 4 and 7; within 4 the keys turn the order round, within 7 ranks 3 and 5 share one.
    const std::array color{4, 7, 4, 7, 4, 7}, key{30, 5, 20, -1, 10, -1};
    Group part = group.split(color[static_cast<std::size_t>(me)], key[static_cast<std::size_t>(me)]);
    const std::vector<int> want = me % 2 == 0 ? std::vector{4, 2, 0} : std::vector{3, 5, 1};
    expect(part.size() == 3 && part.backend() == group.backend());
    expect(members(part, group) == want);
    expect(want[static_cast<std::size_t>(part.rank())] == me);
    // Without a key, in the order of ranks.
    Group plain = group.split(me % 2);
    expect(members(plain, group) == (me % 2 == 0 ? std::vector{0, 2, 4} : std::vector{1, 3, 5}));
    expect(plain.name() != part.name() && part.name() != group.name());
  });
}

TEST_CASE("subgroups: a negative color joins no group, and goes on with the parent", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
    for (int round = 0; round < 3; ++round) {
      Group part = group.split(group.rank() == round ? -1 - round : 0);
      if (group.rank() == round)
        expect_no_group(part);
      else
        expect(part.size() == 3);
      std::vector<int> one{1};
      if (part) part.allreduce(one);
      group.allreduce(one);
      expect(one[0] == 3 * 3 + 1);
    }
    expect(!group.split(-1));  // nobody joins
  });
}

TEST_CASE("subgroups: a group of the ranks listed, in the order given", "[group]") {
  threads_on_each_backend(5, [](Group& group) {
    const std::array order{4, 0, 3};
    Group part = group.subgroup(order, "some");
    const bool is_in = group.rank() != 1 && group.rank() != 2;
    expect(bool(part) == is_in);
    if (!is_in) return expect_no_group(part);
    expect(part.name() == "some" && members(part, group) == std::vector{4, 0, 3});
    expect(col::get_group("some").rank() == part.rank());
    std::vector<int> data{part.rank() == 0 ? 77 : 0};
    part.broadcast(data);
    expect(data[0] == 77);
  });
}

TEST_CASE("subgroups: of one, and of nobody", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    Group alone = group.split(group.rank());
    std::vector<int> data{5};
    alone.allreduce(data);
    expect(alone.size() == 1 && data[0] == 5);
    expect(!group.subgroup(std::span<const int>(), "nobody"));
    group.barrier();
  });
}

TEST_CASE("subgroups: a list with a rank twice, or outside, is refused on all ranks", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    for (const std::array list : {std::array{0, 1, 0}, std::array{0, 1, 3}, std::array{0, -1, 2}}) {
      expect_error(ErrorCode::invalid_argument, "", [&] { group.subgroup(list, "wrong"); });
    }
    group.barrier();
    expect(group.subgroup(std::array{2, 1, 0}, "wrong").size() == 3);
  });
}

TEST_CASE("subgroups: lists that disagree are a mismatch that names the odd rank", "[group]") {
  for (const int odd : {0, 1, 3}) {
    for (const bool other_name : {false, true}) {
      threads_on_each_backend(4, [&](Group& group) {
        const bool differs = group.rank() == odd;
        const std::array list{0, differs && !other_name ? 2 : 1, 3};
        expect_error({.code = ErrorCode::mismatch, .rank = odd},
                     [&] { group.subgroup(list, differs && other_name ? "other" : "some"); });
      });
    }
  }
}

TEST_CASE("subgroups: calls that are made of others are reported by the name that the user called", "[group]") {
  struct Case {
    std::function<void(Group&, bool)> call;
    std::string words;
  };
  const std::vector<Case> cases = {
      {[](Group& group, bool odd) { odd ? group.barrier() : void(group.dup()); }, "called dup: allgather of"},
      {[](Group& group, bool odd) { odd ? group.barrier() : void(group.split(0)); }, "called split: allgather of"},
      {[](Group& group, bool odd) {
         odd ? group.dup() : group.subgroup(std::array{0, 1, 2}, "x");
       },
       "called subgroup: allgather of"},
      {[](Group& group, bool odd) {
         std::string text = "text";
         odd ? group.barrier() : group.broadcast_object(text);
       },
       "called broadcast_object: broadcast of 1 uint64"},
      {[](Group& group, bool odd) { odd ? group.barrier() : col::free(group.alloc(1000)); }, "called alloc: allgather"},
  };
  for (const Case& c : cases) {
    threads_on_each_backend(3, [&](Group& group) {
      expect_error({.code = ErrorCode::mismatch, .rank = 1, .says = c.words}, [&] {
        c.call(group, group.rank() == 1);
        group.barrier();  // those whose part was complete are told here
      });
    });
  }
}

TEST_CASE("subgroups: a refusal names its rank in the job", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    Group part = group.split(group.rank() == 0 ? -1 : 1);  // 1, 2
    if (!part) return;
    const int me = group.rank();
    const auto check = [&](const std::function<void()>& call) {
      const Error error = error_of(call);
      expect(error.rank() == part.rank() && error.world_rank() == me, error.what());
    };
    int value = 0;
    check([&] { part.barrier({.group = "another"}); });
    check([&] { part.recv(value, part.rank(), {.tag = 3}); });
    check([&] { part.shrink(std::array{part.rank()}); });
    check([&] { part.subgroup(std::array{7}, "x"); });
    part.barrier();
    part.destroy();
    check([&] { part.barrier(); });
  });
}

TEST_CASE("subgroups: a duplicate does not depend on its parent", "[group]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group twin = group.dup();
    expect(twin.rank() == group.rank() && twin.size() == group.size() && twin.name() != group.name());
    // Equal calls on both, in a different order on each rank: they never pair with each other's.
    std::vector<int> in(10000, 1), a(in.size()), b(in.size()), sent{1}, got{0};
    const bool turned = group.rank() == 1;
    Work first = turned ? twin.iallreduce(in, b) : group.iallreduce(in, a);
    Work second = turned ? group.iallreduce(in, a) : twin.iallreduce(in, b);
    const auto deadline = Deadline::after(20s);
    for (bool ended = false; !ended;) {
      const bool first_ended = first.test();  // each group moves in its own calls only
      ended = second.test() && first_ended;
      expect(!deadline.expired());
    }
    expect(a.back() == 3 && b.back() == 3);
    if (group.rank() == 0) {
      twin.send(std::vector<int>{2}, 1);
      group.send(sent, 1);
    } else if (group.rank() == 1) {
      Work mine = group.irecv(got, 0);
      std::vector<int> of_twin{0};
      twin.recv(of_twin, 0);
      mine.wait();
      expect(got[0] == 1 && of_twin[0] == 2);
    }
    group.barrier();
    context.destroy_group("default");
    twin.allreduce(in);
    expect(in.back() == 3);
    Group third = twin.dup();
    third.barrier();
  });
}

TEST_CASE("subgroups: splits of splits, and all of them used by turns", "[group]") {
  threads_on_each_backend(8, [](Group& group) {
    const int me = group.rank();
    Group half = group.split(me / 4);
    Group quarter = half.split(half.rank() / 2);
    Group across = group.split(me % 4);    // one rank of each half
    Group odd = group.split(me % 2, -me);  // overlaps all of them, backwards
    for (int round = 0; round < 5; ++round) {
      std::map<Group*, int> want{{&group, 28}, {&half, me < 4 ? 6 : 22}, {&across, 2 * (me % 4) + 4}};
      want[&quarter] = me / 2 * 4 + 1;
      want[&odd] = me % 2 == 0 ? 12 : 16;
      for (Group* one : {&group, &quarter, &across, &half, &odd, &quarter}) {
        std::vector<int> value(100, me);
        one->allreduce(value);
        expect(value.back() == want[one], fmt::format("{} in {}", value.back(), one->name()));
      }
    }
    expect(odd.rank() == (me % 2 == 0 ? (6 - me) / 2 : (7 - me) / 2));
  });
}

TEST_CASE("subgroups: groups made and used at the same time do not mix", "[group]") {
  threads_on_each_backend(6, [](Group& group) {
    for (int round = 0; round < 3; ++round) {
      Group part = group.split((group.rank() + round) % 3);  // same colors again, other members
      std::vector<int> value{1 << group.rank()};
      for (int i = 0; i < 10; ++i) {
        std::vector<int> bits = value;
        part.allreduce(bits, {.op = ReduceOp::bor});
        const int partner = (group.rank() + 3) % 6;
        expect(bits[0] == ((1 << group.rank()) | (1 << partner)));
      }
    }
  });
}

TEST_CASE("subgroups: threads of a rank use a group each at the same time", "[group]") {
  constexpr int kThreads = 3;
  threads_on_each_backend(3, [](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < kThreads; ++i) groups.push_back(group.dup());
    std::atomic<int> good{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          Group& own = groups[static_cast<std::size_t>(i)];
          bool all = true;
          for (int round = 0; round < 50; ++round) {
            std::vector<int> data(2000, i * 1000 + round), got(1);
            own.allreduce(data);
            const int next = (own.rank() + 1) % 3, previous = (own.rank() + 2) % 3;
            own.sendrecv(std::vector<int>{i * 10 + own.rank()}, next, got, previous);
            all = all && data.back() == 3 * (i * 1000 + round) && got[0] == i * 10 + previous;
          }
          good += all ? 1 : 0;
        });
      }
    }
    expect(good == kThreads);
  });
}

TEST_CASE("subgroups: one group used by two threads at once is refused, and the first call goes on", "[group]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    std::vector<int> data{0};
    if (group.rank() == 1) {
      context.spec().store->wait_for("has been refused", 20s);
      return group.send(std::vector<int>{42}, 0);
    }
    const auto deadline = Deadline::after(20s);
    // Once it is in its call, it stays there until rank 1 sends, which is after this. It may be refused before, while
    // the other thread looks whether it is.
    std::jthread receiver([&] {
      while (!deadline.expired()) {
        try {
          return group.recv(data, 1);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::invalid_argument) return;
        }
      }
    });
    for (bool refused = false; !refused;) {
      expect(!deadline.expired());
      try {
        (void)group.trace();
      } catch (const Error& error) {
        expect(error.code() == ErrorCode::invalid_argument && has(error.message(), "in use by another thread"),
               error.what());
        refused = true;
      }
    }
    std::vector<int> other(3);
    expect_error(ErrorCode::invalid_argument, "", [&] { group.allreduce(other); });
    expect_error(ErrorCode::invalid_argument, "", [&] { std::ignore = group.irecv(other, 1); });
    expect_error(ErrorCode::invalid_argument, "", [&] { group.dup(); });
    context.spec().store->set("has been refused", "");
    receiver.join();
    expect(data[0] == 42);
  });
}

// ---- Ranks of the group, and of the job

TEST_CASE("subgroups: a group says which ranks of the job it has, and which of its ranks one of them is", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
    expect(group.ranks() == std::vector{0, 1, 2, 3});
    const int me = group.rank();
    Group part = group.split(me % 2, -me);  // 2, 0 and 3, 1
    const std::vector<int> want = me % 2 == 0 ? std::vector{2, 0} : std::vector{3, 1};
    expect(part.ranks() == want);
    expect(part.world_rank(part.rank()) == me && part.rank_of(me) == part.rank());
    expect(part.rank_of(1 - me % 2) == -1 && part.rank_of(99) == -1);
    const Error error = error_of([&] { (void)part.world_rank(2); });
    expect(error.code() == ErrorCode::invalid_argument && error.world_rank() == me, error.what());
    Group alone = part.split(part.rank());
    expect(alone.ranks() == std::vector{me});
    Group pair_of_pair = part.dup();
    expect(pair_of_pair.ranks() == want);
  });
}

TEST_CASE("subgroups: an error tells the culprit's rank in the group and in the job", "[group]") {
  threads_on_each_backend(5, [](Group& group) {
    Group part = group.split(group.rank() < 2 ? -1 : 1, -group.rank());  // 4, 3, 2
    if (!part) return;
    std::vector<int> data(part.rank() == 2 ? 11 : 10);
    const Error error = expect_error({.code = ErrorCode::mismatch, .rank = 2}, [&] { part.allreduce(data); });
    const Error later = expect_error({.code = ErrorCode::aborted, .rank = 2}, [&] { part.barrier(); });
    expect(error.world_rank() == 2 && later.world_rank() == 2, later.what());
    // Equal numbers are said once; ranks 0 and 1 here are 4 and 3 of the job.
    expect(!has(error.message(), "rank 2 (world"), error.what());
    expect(has(error.message(), "ranks 0, 1 (world ranks 4, 3)"), error.what());
    expect(error.message().rfind("(world ranks") == error.message().find("(world ranks"), error.what());
  });
}

TEST_CASE("subgroups: who does not come in time is named with both ranks", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    Group part = group.split(group.rank() == 0 ? -1 : 1, 0);  // 1, 2
    if (part && part.rank() == 0) {
      const Error error = expect_error({.code = ErrorCode::timeout, .rank = 1, .says = "rank 1 (world rank 2)"},
                                       [&] { part.barrier({.timeout = 300ms}); });
      expect(error.world_rank() == 2, error.what());
    }
    group.barrier();
  });
}

TEST_CASE("subgroups: a group is left by its handle, which says so from then on", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    Group part = group.dup();
    Group same = part;
    part.destroy();
    for (Group* handle : {&part, &same}) {
      expect_error(ErrorCode::not_initialized, "", [&] { handle->barrier(); });
      handle->destroy();  // once more: nothing to do
    }
    Group anew = group.subgroup(std::array{0, 1}, std::string(part.name()));  // its name is free again
    same.destroy();
    anew.barrier();
    expect(anew.timeout() == group.timeout() && anew.timeout() > 0s);
  });
}

}  // namespace
}  // namespace col::test

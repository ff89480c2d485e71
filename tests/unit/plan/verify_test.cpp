// Small plans made by hand, one for each thing that verify() says.
#include <algorithm>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "support/catch.hpp"

namespace col {
namespace {

using OwnRounds = std::vector<Round>;  // of one rank

constexpr Slice in(std::size_t offset, std::size_t count) {
  return {Buffer::input, offset, count};
}
constexpr Slice out(std::size_t offset, std::size_t count) {
  return {Buffer::output, offset, count};
}
constexpr Slice scratch(std::size_t offset, std::size_t count) {
  return {Buffer::scratch, offset, count};
}
constexpr Slice wide(std::size_t offset, std::size_t count) {
  return {Buffer::wide, offset, count};
}

Step send(int peer, Slice from) {
  return {.kind = Step::Kind::send, .peer = peer, .left = from};
}
Step recv(int peer, Slice to) {
  return {.kind = Step::Kind::recv, .peer = peer, .to = to};
}
Step reduce(Slice to, Slice left, Slice right) {
  return {.kind = Step::Kind::reduce, .to = to, .left = left, .right = right};
}
Step copy(Slice to, Slice from) {
  return {.kind = Step::Kind::copy, .to = to, .left = from};
}
Step convert(Slice to, Slice from) {
  return {.kind = Step::Kind::convert, .to = to, .left = from};
}

Round round_of(std::initializer_list<Step> steps) {
  Round round;
  for (const Step& step : steps) round.add(step);
  return round;
}

// Each rank's rounds; all have 16 elements of scratch and of wide.
Verdict judge(const PlanProblem::Spec& spec, std::vector<OwnRounds> ranks) {
  const PlanProblem problem(spec);
  return verify(problem, [&ranks](int rank) {
    const OwnRounds& rounds = ranks[static_cast<std::size_t>(rank)];
    return Plan{
        .rounds = rounds.size(), .scratch = 16, .wide = 16, .generate = [&rounds](std::size_t index, Round& to) {
          for (const Step& step : rounds[index].steps()) to.add(step);
        }};
  });
}

PlanProblem::Spec two(Collective collective, std::size_t count = 4) {
  return {.collective = collective, .size = 2, .count = count};
}

}  // namespace

TEST_CASE("verify: a good exchange is good and counted", "[plan]") {
  const Verdict verdict =
      judge(two(Collective::allreduce),
            {
                {round_of({send(1, in(0, 4)), recv(1, wide(0, 4)), reduce(wide(0, 4), in(0, 4), wide(0, 4)),
                           convert(out(0, 4), wide(0, 4))})},
                {round_of({send(0, in(0, 4)), recv(0, wide(0, 4)), reduce(wide(0, 4), wide(0, 4), in(0, 4)),
                           convert(out(0, 4), wide(0, 4))})},
            });
  CHECK(verdict.problem == "");
  CHECK(verdict.good);
  CHECK(verdict.rank == -1);
  CHECK(verdict.order == FoldOrder::rank_order);
  CHECK(verdict.rounds == 1);
  CHECK(verdict.messages == 2);
  CHECK(verdict.elements_sent == 8);
  CHECK(verdict.most_elements_sent == 4);
}

TEST_CASE("verify: lengths of a message must agree", "[plan]") {
  const Verdict verdict = judge(two(Collective::broadcast, 5), {
                                                                   {{}, {}, {}, round_of({send(1, out(0, 4))})},
                                                                   {{}, {}, {}, round_of({recv(0, out(0, 5))})},
                                                               });
  CHECK_FALSE(verdict.good);
  CHECK(verdict.rank == 1);
  CHECK(verdict.round == 3);
  CHECK(verdict.problem ==
        "round 3, rank 1: receives 5 elements from rank 0 into output[0..5), but rank 0 sends 4 in its round 3");
}

TEST_CASE("verify: a missing contribution is named", "[plan]") {
  const Round sends = round_of({send(0, in(0, 7))});
  const Verdict verdict =
      judge({.collective = Collective::reduce, .size = 4, .count = 7},
            {
                {round_of({recv(1, wide(0, 7)), recv(2, wide(8, 7)), recv(3, scratch(0, 7)),
                           reduce(wide(0, 3), in(0, 3), wide(0, 3)), reduce(wide(3, 4), in(3, 4), wide(11, 4)),
                           reduce(wide(0, 3), wide(0, 3), wide(8, 3)), reduce(wide(0, 7), wide(0, 7), scratch(0, 7)),
                           convert(out(0, 7), wide(0, 7))})},
                {sends},
                {sends},
                {sends},
            });
  CHECK(verdict.problem ==
        "after the last round, rank 0, output[3..7): rank 1's contribution is missing (has 0, 2..3)");
  CHECK(verdict.round == 1);
}

TEST_CASE("verify: a contribution that is in twice is named", "[plan]") {
  const Verdict verdict =
      judge(two(Collective::reduce),
            {
                {round_of({recv(1, wide(0, 4)), reduce(wide(0, 4), in(0, 4), wide(0, 4)),
                           reduce(wide(0, 4), in(0, 4), wide(0, 4)), convert(out(0, 4), wide(0, 4))})},
                {round_of({send(0, in(0, 4))})},
            });
  CHECK(verdict.problem == "after the last round, rank 0, output[0..4): rank 0's contribution is in it 2 times");
}

TEST_CASE("verify: contributions that do not belong are named", "[plan]") {
  const Verdict verdict = judge(
      two(Collective::scan), {
                                 {round_of({send(1, in(0, 4)), recv(1, wide(0, 4)),
                                            reduce(wide(0, 4), in(0, 4), wide(0, 4)), convert(out(0, 4), wide(0, 4))})},
                                 {round_of({send(0, in(0, 4)), recv(0, wide(0, 4)),
                                            reduce(wide(0, 4), wide(0, 4), in(0, 4)), convert(out(0, 4), wide(0, 4))})},
                             });
  CHECK(verdict.problem ==
        "after the last round, rank 0, output[0..4): rank 1's contribution does not belong here (has 0..1)");
}

TEST_CASE("verify: all ranks must combine in one order", "[plan]") {
  const auto rank = [](int peer) {
    return OwnRounds{round_of({send(peer, in(0, 4)), recv(peer, wide(0, 4)), reduce(wide(0, 4), in(0, 4), wide(0, 4)),
                               convert(out(0, 4), wide(0, 4))})};
  };
  const Verdict verdict = judge(two(Collective::allreduce), {rank(1), rank(0)});
  CHECK(verdict.problem ==
        "after the last round, rank 1, output[0..4): the contributions are combined in another order than on rank 0");
}

TEST_CASE("verify: the order of combination is told", "[plan]") {
  const auto order_of = [](std::initializer_list<Step> steps) {
    Round round = round_of({recv(1, wide(0, 1)), recv(2, wide(1, 1))});
    for (const Step& step : steps) round.add(step);
    round.add(convert(out(0, 1), wide(2, 1)));
    const Round sends = round_of({send(0, in(0, 1))});
    const Verdict verdict =
        judge({.collective = Collective::reduce, .size = 3, .count = 1}, {{round}, {sends}, {sends}});
    CHECK(verdict.problem == "");
    return verdict.order;
  };
  CHECK(order_of({reduce(wide(2, 1), in(0, 1), wide(0, 1)), reduce(wide(2, 1), wide(2, 1), wide(1, 1))}) ==
        FoldOrder::rank_order);
  CHECK(order_of({reduce(wide(2, 1), wide(0, 1), wide(1, 1)), reduce(wide(2, 1), in(0, 1), wide(2, 1))}) ==
        FoldOrder::contiguous);
  CHECK(order_of({reduce(wide(2, 1), wide(1, 1), wide(0, 1)), reduce(wide(2, 1), in(0, 1), wide(2, 1))}) ==
        FoldOrder::any);
}

TEST_CASE("verify: different elements must not be combined", "[plan]") {
  const Verdict verdict =
      judge(two(Collective::reduce), {
                                         {round_of({recv(1, wide(0, 4)), reduce(wide(8, 3), in(0, 3), wide(1, 3))})},
                                         {round_of({send(0, in(0, 4))})},
                                     });
  CHECK(verdict.problem ==
        "round 0, rank 0: reduces input[0..3) and wide[1..4) to wide[8..11): combines element 0 of rank 0's data with "
        "element 1 of rank 1's data");
}

TEST_CASE("verify: sends that both wait for a receive are a deadlock", "[plan]") {
  const Verdict verdict =
      judge(two(Collective::allgather, 2),
            {
                {round_of({send(1, in(0, 2)), copy(out(0, 2), in(0, 2))}), round_of({recv(1, out(2, 2))})},
                {round_of({send(0, in(0, 2)), copy(out(2, 2), in(0, 2))}), round_of({recv(0, out(0, 2))})},
            });
  CHECK(
      verdict.problem ==
      "round 0, rank 0: deadlock: it waits to send input[0..2) to rank 1; rank 1 in round 0 waits to send input[0..2) "
      "to rank 0");
}

TEST_CASE("verify: waiting for a rank that has ended is told", "[plan]") {
  const Verdict verdict = judge(two(Collective::broadcast), {
                                                                {},
                                                                {{}, round_of({recv(0, out(0, 4))})},
                                                            });
  CHECK(verdict.problem == "round 1, rank 1: waits to receive output[0..4) from rank 0, which has ended");
  CHECK(verdict.rank == 1);
  CHECK(verdict.round == 1);
}

TEST_CASE("verify: a receive must not touch another slice in flight", "[plan]") {
  SECTION("of another receive") {
    const Verdict verdict = judge({.collective = Collective::gather, .size = 3, .count = 2},
                                  {
                                      {round_of({recv(1, out(2, 2)), recv(2, out(3, 2)), copy(out(0, 2), in(0, 2))})},
                                      {round_of({send(0, in(0, 2))})},
                                      {round_of({send(0, in(0, 2))})},
                                  });
    CHECK(verdict.problem ==
          "round 0, rank 0: receives from rank 2 into output[3..5), which overlaps output[2..4) that is received from "
          "rank 1 in the same round");
  }
  SECTION("of a send") {
    const Verdict verdict = judge(two(Collective::broadcast), {
                                                                  {round_of({send(1, out(0, 4)), recv(1, out(2, 2))})},
                                                                  {round_of({recv(0, out(0, 4)), send(0, out(0, 2))})},
                                                              });
    CHECK(verdict.problem ==
          "round 0, rank 0: receives from rank 1 into output[2..4), which overlaps output[0..4) that is sent to rank 1 "
          "in "
          "the same round");
  }
  SECTION("that it meets because input and output are one") {
    const auto rank = [](int peer) { return OwnRounds{round_of({send(peer, in(0, 4)), recv(peer, out(0, 4))})}; };
    PlanProblem::Spec spec = two(Collective::allreduce);
    spec.in_place = true;
    const Verdict verdict = judge(spec, {rank(1), rank(0)});
    CHECK(
        verdict.problem ==
        "round 0, rank 0: receives from rank 1 into output[0..4), which overlaps input[0..4) that is sent to rank 1 in "
        "the same round");
  }
}

TEST_CASE("verify: in place, an input that was overwritten is a wrong contribution", "[plan]") {
  const auto rank = [](std::size_t own, std::size_t other, int peer) {
    return OwnRounds{round_of({copy(out(other, 2), in(own, 2))}),
                     round_of({send(peer, in(other, 2)), recv(peer, scratch(0, 2))}),
                     round_of({copy(out(other, 2), scratch(0, 2))})};
  };
  PlanProblem::Spec spec = two(Collective::alltoall, 2);
  spec.in_place = true;
  const Verdict verdict = judge(spec, {rank(0, 2, 1), rank(2, 0, 0)});
  CHECK(verdict.problem ==
        "after the last round, rank 0, output[2..4): holds rank 1's data from element 2 and not rank 1's data from "
        "element 0");
}

TEST_CASE("verify: in place, the shorter buffer is a block of the longer one", "[plan]") {
  PlanProblem::Spec spec = two(Collective::allgather, 2);
  spec.in_place = true;
  const Verdict verdict = judge(spec, {
                                          {round_of({send(1, in(0, 2)), recv(1, out(2, 2))})},
                                          {round_of({send(0, out(2, 2)), recv(0, out(0, 2))})},
                                      });
  CHECK(verdict.problem == "");
}

TEST_CASE("verify: what is not a rank's to write is not written", "[plan]") {
  CHECK(judge(two(Collective::alltoall, 2), {{round_of({copy(in(0, 2), in(2, 2))})}, {}}).problem ==
        "round 0, rank 0: copies input[2..4) to input[0..2): an input is never written");
  CHECK(judge(two(Collective::reduce), {{}, {round_of({convert(out(0, 4), in(0, 4))})}}).problem ==
        "round 0, rank 1: converts input[0..4) to output[0..4): output has 0 elements here");
  CHECK(judge(two(Collective::exscan), {{round_of({copy(out(0, 4), in(0, 4))})}, {}}).problem ==
        "round 0, rank 0: copies input[0..4) to output[0..4): rank 0 of an exscan leaves its output as it is");
}

TEST_CASE("verify: slices stay inside their buffers", "[plan]") {
  CHECK(judge(two(Collective::allgather), {{round_of({copy(out(6, 3), in(0, 3))})}, {}}).problem ==
        "round 0, rank 0: copies input[0..3) to output[6..9): output has 8 elements here");
  CHECK(judge(two(Collective::allgather), {{round_of({send(1, scratch(15, 2))})}, {}}).problem ==
        "round 0, rank 0: sends scratch[15..17) to rank 1: scratch has 16 elements here");
  const std::size_t huge = static_cast<std::size_t>(-1);
  CHECK_FALSE(judge(two(Collective::allgather), {{round_of({copy(out(huge, 3), in(0, 3))})}, {}}).good);
  CHECK_FALSE(judge(two(Collective::allgather), {{round_of({copy(out(2, huge), in(0, huge))})}, {}}).good);
}

TEST_CASE("verify: peers are other ranks of the group", "[plan]") {
  CHECK(judge(two(Collective::broadcast), {{round_of({send(2, out(0, 4))})}, {}}).problem ==
        "round 0, rank 0: sends to rank 2, which is not in a group of 2");
  CHECK(judge(two(Collective::broadcast), {{round_of({recv(-1, out(0, 4))})}, {}}).problem ==
        "round 0, rank 0: receives from rank -1, which is not in a group of 2");
  CHECK(judge(two(Collective::broadcast), {{}, {round_of({send(1, out(0, 4))})}}).problem ==
        "round 0, rank 1: sends to itself; a copy does that");
}

TEST_CASE("verify: unset elements are not read", "[plan]") {
  CHECK(judge(two(Collective::broadcast), {{}, {round_of({copy(scratch(0, 4), out(0, 4))})}}).problem ==
        "round 0, rank 1: copies output[0..4) to scratch[0..4): output[0..4) was never written");
  CHECK(judge(two(Collective::allgather, 2),
              {{round_of({copy(scratch(3, 2), in(0, 2)), copy(out(0, 4), scratch(2, 4))})}, {}})
            .problem == "round 0, rank 0: copies scratch[2..6) to output[0..4): scratch[2..3) was never written");
  CHECK(judge(two(Collective::broadcast), {{round_of({recv(1, scratch(0, 1))})}, {round_of({send(0, out(0, 1))})}})
            .problem == "round 0, rank 1: sends output[0..1) to rank 0: output[0..1) was never written");
  CHECK(judge(two(Collective::broadcast), {{}, {}}).problem ==
        "after the last round, rank 1, output[0..4): was never written");
}

TEST_CASE("verify: slices of a step are equally long and do not half overlap", "[plan]") {
  CHECK(judge(two(Collective::reduce), {{round_of({reduce(wide(0, 3), in(0, 3), in(0, 2))})}, {}}).problem ==
        "round 0, rank 0: reduces input[0..3) and input[0..2) to wide[0..3): the slices differ in length");
  CHECK(judge(two(Collective::reduce),
              {{round_of({copy(wide(0, 4), in(0, 4)), reduce(wide(1, 2), wide(0, 2), in(0, 2))})}, {}})
            .problem ==
        "round 0, rank 0: reduces wide[0..2) and input[0..2) to wide[1..3): wide[1..3) overlaps wide[0..2) and is not "
        "exactly the same elements");
}

TEST_CASE("verify: every reduced element is converted once, in the end", "[plan]") {
  const auto alone = [](std::initializer_list<Step> steps) {
    return judge({.collective = Collective::allreduce, .size = 1, .count = 4}, {{round_of(steps)}}).problem;
  };
  CHECK(alone({convert(out(0, 4), in(0, 4))}) == "");
  CHECK(alone({copy(out(0, 4), in(0, 4))}) ==
        "after the last round, rank 0, output[0..4): the result is complete but was not converted");
  CHECK(alone({convert(out(0, 4), in(0, 4)), convert(out(0, 4), out(0, 4))}) ==
        "round 0, rank 0: converts output[0..4) to output[0..4): a converted value (of ranks 0) in it is converted "
        "already");
  CHECK(alone({convert(wide(0, 4), in(0, 4)), reduce(wide(0, 4), wide(0, 4), in(0, 4))}) ==
        "round 0, rank 0: reduces wide[0..4) and input[0..4) to wide[0..4): a converted value (of ranks 0) in it is "
        "converted already");
}

TEST_CASE("verify: what reduces nothing has neither reduce nor convert", "[plan]") {
  CHECK(judge(two(Collective::alltoall, 2), {{round_of({convert(out(0, 2), in(0, 2))})}, {}}).problem ==
        "round 0, rank 0: converts input[0..2) to output[0..2), but alltoall reduces nothing");
}

TEST_CASE("verify: partial results stay wide", "[plan]") {
  PlanProblem::Spec spec = two(Collective::allreduce);
  spec.widens = true;
  CHECK(
      judge(spec, {{round_of({reduce(scratch(0, 4), in(0, 4), in(0, 4))})}, {}}).problem ==
      "round 0, rank 0: reduces input[0..4) and input[0..4) to scratch[0..4): the partial result is rounded before it "
      "was complete; keep it in wide");
  CHECK(judge(spec, {{round_of({copy(wide(0, 4), in(0, 4)), copy(out(0, 4), wide(0, 4))})}, {}}).problem ==
        "round 0, rank 0: copies wide[0..4) to output[0..4): the partial result is rounded before it was complete; a "
        "convert does that in the end");
  CHECK(
      judge(spec, {{round_of({convert(wide(0, 4), in(0, 4))})}, {}}).problem ==
      "round 0, rank 0: converts input[0..4) to wide[0..4): a converted value is of the user's type, and wide is not");
  CHECK(judge(spec, {{round_of({send(1, in(0, 4))})}, {round_of({recv(0, wide(0, 4))})}}).problem ==
        "round 0, rank 1: receives from rank 0 into wide[0..4), of the wide type, but rank 0 sends input[0..4), of the "
        "user's type, in its round 0");
  spec.wide_input = true;
  CHECK(
      judge(spec, {{round_of({send(1, in(0, 4))})}, {round_of({recv(0, scratch(0, 4))})}}).problem ==
      "round 0, rank 1: receives from rank 0 into scratch[0..4), of the user's type, but rank 0 sends input[0..4), of "
      "the wide type, in its round 0");
  spec.in_place = true;
  CHECK_FALSE(judge(spec, {{}, {}}).good);
}

TEST_CASE("verify: nobody leaves a barrier before all have entered", "[plan]") {
  const auto signal = [](int peer) { return send(peer, {}); };
  const auto await = [](int peer) { return recv(peer, {}); };
  const PlanProblem::Spec spec{.collective = Collective::barrier, .size = 3};
  CHECK(judge(spec, {{round_of({await(1), await(2)}), round_of({signal(1), signal(2)})},
                     {round_of({signal(0)}), round_of({await(0)})},
                     {round_of({signal(0)}), round_of({await(0)})}})
            .problem == "");
  // Rank 0's signals are of the round's start: it has not heard of the others yet.
  CHECK(judge(spec, {{round_of({await(1), await(2), signal(1), signal(2)})},
                     {round_of({signal(0), await(0)})},
                     {round_of({signal(0), await(0)})}})
            .problem == "after the last round, rank 1: leaves the barrier and cannot know that rank 2 has entered");
}

TEST_CASE("verify: messages from one rank to another pair in order", "[plan]") {
  const Verdict verdict =
      judge(two(Collective::broadcast), {
                                            {round_of({send(1, out(2, 2)), send(1, out(0, 2))})},
                                            {round_of({recv(0, out(0, 2))}), round_of({recv(0, out(2, 2))})},
                                        });
  CHECK(verdict.problem ==
        "after the last round, rank 1, output[0..2): holds rank 0's data from element 2 and not rank 0's data from "
        "element "
        "0");
}

TEST_CASE("verify: a plan without its function is a fault, not a crash", "[plan]") {
  const PlanProblem problem(two(Collective::broadcast));
  const Verdict verdict = verify(problem, [](int) { return Plan{.rounds = 2}; });
  CHECK(verdict.problem.rfind("round 0, rank 0: the plan has 2 rounds", 0) == 0);
}

TEST_CASE("verify: in place, an alltoallv sends as much as it receives", "[plan]") {
  PlanProblem::Spec spec{.collective = Collective::alltoallv, .size = 2, .counts = {1, 2, 3, 1}, .in_place = true};
  const Verdict verdict = judge(spec, {{}, {}});
  CHECK_FALSE(verdict.good);
  CHECK(verdict.problem.find("rank 1 sends 3 elements to rank 0, which sends 2") != std::string::npos);
}

}  // namespace col

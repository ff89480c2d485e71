// A rank that is held up while it copies out of the others' memory, until their calls have timed out and their buffers
// have been overwritten: it gets an error, never success.
#include <algorithm>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/held_copy.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr int kCalls = 4;  // in the first ones the ranks find out that they can copy
constexpr std::size_t kElements = 20'000;
constexpr Duration kTimeout = std::chrono::seconds(2);

void cases(const Selection& selection, std::vector<Case>& all) {
  std::vector<Primitive> calls = {Primitive::alltoall, Primitive::scatter};
  if (selection.effort == Effort::full) calls.insert(calls.end(), {Primitive::broadcast, Primitive::allgather});
  const std::vector<int> sizes = drill_ranks(selection);
  if (sizes.empty() ||
      std::find(selection.backends.begin(), selection.backends.end(), "shm") == selection.backends.end())
    return;
  std::uint64_t number = 0;
  for (const Primitive call : calls) {
    Case c;
    c.property = "late_copy";
    c.backend = "shm";
    c.seed = mix(selection.seed, ++number);
    const bool for_two = call == Primitive::broadcast || call == Primitive::allgather;
    c.ranks = for_two ? 2 : sizes.front();
    c.primitive = call;
    c.algorithm = "shared";
    c.dtype = DType::int32;
    c.count = kElements;
    all.push_back(c);
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const int reader = c.ranks - 1;  // no root
  Job job({.ranks = c.ranks,
           .arguments = {"--fault-rank",
                         encode(Drill{.c = c, .calls = kCalls, .odd = reader, .oddity = Drill::Oddity::copies_late})},
           .timeout = kTimeout});
  bool held = job.await_point(reader, "copying");
  for (int rank = 0; rank < reader; ++rank) held = held && job.await_point(rank, "overwritten");
  job.go_on(reader);
  job.await_report(reader);
  for (int rank = 0; rank < reader; ++rank) job.go_on(rank);
  const JobEnd end = job.finish();
  const RankEnd& late = end.ranks[static_cast<std::size_t>(reader)];
  if (late.report && late.report->message == kCannotHold) return Finding::skip("system calls cannot be held here");
  const bool has_error = late.report && !late.report->good() && late.report->code != "wrong_data" &&
                         late.report->doing == fmt::format("call {}", kCalls);
  return Finding::of(first_of({held || !has_error ? "" : "it was not held: " + describe(end, reader),
                               has_error ? "" : describe(end, reader) + "; expected an error in its last call",
                               problem_with_traces(end)}));
}

}  // namespace

const Property kFaultLateCopy{"late_copy",
                              "a rank that reads its peers' memory after their calls have failed reports no success",
                              Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck

// The table of drills. To add one, add a row here, and its line to docs/checking.md.
#include <algorithm>
#include <csignal>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/rows.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Who kAll = Who::all, kOdd = Who::odd, kOthers = Who::others;
using Since = Way::Since;
using Variants = std::vector<std::uint64_t>;

constexpr Said kAnything{.end = Said::End::any}, kWasKilled{.end = Said::End::killed}, kLeft{.end = Said::End::leaves},
    kNoticed{.codes = kAnyError}, kEnds{.codes = kWell | kAnyError};
constexpr Said kMismatch{.codes = any_of(ErrorCode::mismatch), .names_odd = true},
    kPeerLost{.codes = any_of(ErrorCode::peer_lost), .names_odd = true},
    kTimedOut{.codes = any_of(ErrorCode::timeout), .names_odd = true};
constexpr Codes kNoRoom = any_of(ErrorCode::resource, ErrorCode::io);

// Ranks give up nearly at once, and the first takes the others along.
constexpr double kAlmost = 0.9;
constexpr Duration kHangTimeout = seconds(30), kHangLimit = seconds(40);
// More than enough for one group of four; not for thirty; for whatever there is.
constexpr std::size_t kSmallBytes = 64 << 10, kFewGroupsBytes = 4 << 20, kRoomyBytes = 64 << 20;

bool is_on_one_host(Case& c) {
  return !is_over_hosts(c.backend);
}
bool is_shm(Case& c) {
  return c.backend == to_string(Backend::shm);
}

// By the kernel, out of another rank's memory: some calls only between two. The odd rank is the last, and no root.
bool is_copied(Case& c) {
  c.root = 0;
  if (c.primitive == Primitive::broadcast || c.primitive == Primitive::allgather) c.ranks = 2;
  return is_shm(c);
}

Variants up_to(std::uint64_t last, Variants more = {}) {
  Variants all(last + 1);
  std::iota(all.begin(), all.end(), 0);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Variants times(int repeat, const Variants& some) {
  Variants all;
  for (; repeat > 0; --repeat) all.insert(all.end(), some.begin(), some.end());
  return all;
}

// Each change, in one of the modes.
Variants each_change() {
  Variants all = up_to(kChanges - 1);
  for (std::uint64_t& change : all) change = kModes * change + change % kModes;
  return all;
}

// ---- Rows that are alike

// One rank makes another call than the others. Case::variant is the value of COL_CHECK: lazy (0) or strict (1). The
// library waits for 100 ms before it looks, and needs some more to find the rank that differs.
Drill mismatch(std::string_view name, std::string_view summary, DType dtype, std::vector<NamedCall> calls,
               void (*change)(Case&), bool in_flight = false) {
  const std::size_t number = calls.size();
  std::vector<Way> ways;
  for (const char* const check : {"COL_CHECK=lazy", "COL_CHECK=strict"})
    ways.push_back({.variant = ways.size(),
                    .act = Act::calls_other,
                    .calls = 2,
                    .environment = check,
                    .in_flight = in_flight,
                    .script = {await(kAll, "call"), note(), go_on(kAll)},
                    .timeout = seconds(2),
                    .said = kMismatch,
                    .since = Since::noted,
                    .within = 1.5});
  return {.name = name,
          .summary = summary,
          .on_gpus = OnGpus::buffers,
          .draw = {.sizes = Choice::Sizes::least_three,
                   .calls = std::move(calls),
                   .quick_calls = number,
                   .variants = {0, 1},
                   .in_turn = true,
                   .dtype = dtype,
                   // The backend does not look at memory of GPUs itself.
                   .fits = [](Case& c) { return c.variant == 1 || !tools::moves_device_memory(c.backend); }},
          .ways = std::move(ways),
          .change = change};
}

// A rank that has no part in the call that differs may come to its end.
Way program(Way way, Said said) {
  way.act = Act::runs_program;
  said.codes |= kWell;
  way.said = said;
  way.somebody = true;
  way.within = 1.5;
  return way;
}

// A rank is gone: the others name it within a second.
Way gone(Way way, const Said& odd = kWasKilled, const Said& others = kPeerLost) {
  way.calls = 2;  // the one that is struck is not the first of its group
  way.odd = odd;
  way.said = others;
  way.since = Since::odd_ended;
  return way;
}

// The others wait for the odd rank until the timeout, and then name it.
Way waited_for(Way way, const Said& odd) {
  way.calls = 2;
  way.timeout = seconds(1);
  way.odd = odd;
  way.said = kTimedOut;
  way.since = Since::noted;
  way.within = 2;
  way.not_before = kAlmost;
  return way;
}

// The others wait for it, or for one that does, and stay until it is gone: one that ends would be named by those that
// still wait. How late they are is judged elsewhere.
Way tangled(Way way) {
  for (const Step& step : {await(kOthers, "report"), strike(kOdd, SIGKILL), go_on(kAll)}) way.script.push_back(step);
  way.act = Act::tangles;
  way.timeout = seconds(2);
  way.said = kTimedOut;
  way.odd = kWasKilled;
  way.within = 10;
  return way;
}

// While they hang, coljob's sentence is right; then they are killed.
Way hanging(Way way, std::vector<Step> script) {
  script.push_back(explain());
  script.push_back(strike(kAll, SIGKILL));
  way.calls = way.act == Act::hangs ? 1 : 3;
  way.script = std::move(script);
  way.timeout = kHangTimeout;
  way.limit = kHangLimit;
  way.said = kAnything;
  return way;
}

// So many seconds beyond the timeout.
Way in_time(Way way, Duration timeout) {
  way.timeout = timeout;
  way.within = std::chrono::duration<double>(timeout).count() + 1;
  return way;
}

std::vector<NamedCall> calls_of(std::initializer_list<Primitive> primitives) {
  std::vector<NamedCall> calls;
  for (const Primitive primitive : primitives) calls.push_back({primitive});
  return calls;
}

std::vector<Drill> table_of_drills() {
  using P = Primitive;
  using Sizes = Choice::Sizes;
  const std::vector<Step> away = {await(kOdd, "away"), note(), await(kOthers, "report"), go_on(kOdd)};
  return {
      // ---- Ranks that disagree
      mismatch("mismatch_op", "one rank that calls another primitive is named on all ranks", DType::float32,
               calls_of({P::allreduce, P::broadcast, P::allgather, P::gather, P::alltoall, P::exscan, P::reduce,
                         P::barrier}),
               &change_primitive),
      mismatch("mismatch_count", "one rank that calls with another count is named on all ranks", DType::float32,
               calls_of({P::allreduce, P::broadcast, P::reduce, P::allgather, P::allgatherv, P::reduce_scatter,
                         P::gather, P::scatter, P::alltoall, P::scan}),
               &change_count),
      mismatch("mismatch_dtype", "one rank that calls with another dtype is named on all ranks", DType::int32,
               calls_of({P::allreduce, P::broadcast, P::reduce, P::allgather, P::reduce_scatterv, P::scatter,
                         P::alltoall, P::scan}),
               &change_dtype),
      mismatch("mismatch_root", "one rank that calls with another root is named on all ranks", DType::float32,
               calls_of({P::broadcast, P::reduce, P::gather, P::gatherv, P::scatter, P::scatterv}), &change_root),
      mismatch("mismatch_reduce_op", "one rank that reduces by another operator is named on all ranks", DType::int32,
               calls_of({P::allreduce, P::reduce, P::reduce_scatter, P::reduce_scatterv, P::scan, P::exscan}),
               &change_operator),
      mismatch("mismatch_in_flight",
               "one rank that starts another call is named on all ranks, which wait in the next one", DType::float32,
               calls_of({P::allreduce, P::broadcast, P::reduce, P::allgather, P::scatter, P::barrier}),
               &change_something, true),
      {.name = "mismatch_program",
       .summary = "in a random program, of which one rank changes a call, who is told is told of that rank",
       .draw = {.sizes = Sizes::least_three,
                .variants = each_change(),
                .full_variants = times(3, up_to(kChanges * kModes - 1))},
       // Counts may differ between two alone, neither of which is the odd one.
       .ways = {program({.variant = 0}, kMismatch), program({.variant = kFirstOfCounts}, {.codes = kMismatch.codes})}},

      // ---- Ranks that do not come, die, or end too early
      {.name = "absent",
       .summary = "a rank that never comes is named by the others when the timeout is over, not later",
       .on_gpus = OnGpus::buffers,
       .draw = {.calls = calls_of({P::allreduce, P::broadcast, P::reduce, P::gatherv, P::scatter, P::alltoall,
                                   P::allgather, P::exscan}),
                .variants = {0, 1}},
       .ways = {waited_for({.variant = 0, .act = Act::never_joins, .script = away}, kEnds),
                waited_for({.variant = 1, .act = Act::stays_away, .script = away}, kEnds)}},
      {.name = "killed",
       .summary = "a rank killed at any step of any algorithm is named by all others within a second",
       .on_gpus = OnGpus::buffers,
       .draw = {.add = &add_killed},
       .ways = {gone({.fault = "kill:rank={odd},op=2,step={planned}"})},
       .odd = &killed_rank,
       .parts = &killed_steps},
      // Should the group be made before the blow, then the victim waits there, and the others miss it in the call.
      {.name = "killed_joining",
       .summary = "a rank killed while its group is being made is named by all others within a second",
       // Microseconds after the order to join: a group of four is made in about ten milliseconds. 0: before the order.
       // Before it is connected, only its own host can see that it is gone.
       .draw = {.calls = {{P::barrier}},
                .variants = {0, 2'000, 5'000, 11'000},
                .full_variants = times(2, {0, 500, 1'000, 2'000, 3'500, 5'000, 7'000, 9'000, 11'000, 14'000}),
                .fits = &is_on_one_host},
       .ways = {gone({.variant = 0,
                      .script = {await(kAll, "ready"), go_on(kOthers), strike(kOdd, SIGKILL),
                                 release(kOthers, "call")}}),
                gone({.variant = 1,
                      .script = {await(kAll, "ready"), go_on(kAll), pause({}), strike(kOdd, SIGKILL),
                                 release(kOthers, "call")}})}},
      {.name = "exits_early",
       .summary = "a rank that ends too early, with exit code 0, is named within a second",
       .on_gpus = OnGpus::buffers,
       .draw = {.calls = {{P::allreduce, "ring"}, {P::gather}, {P::broadcast}, {P::scatterv}, {P::alltoall}, {P::scan}},
                .quick_calls = 2,
                .variants = {0, 1, 2}},
       .ways = {gone({.variant = 0, .fault = "exit:rank={odd},op=2,step={step},code=0"}, kLeft),
                gone({.variant = 1, .act = Act::walks_out}, kLeft),
                // It has not died, but made fewer calls than the others.
                gone({.variant = 2, .act = Act::leaves}, kLeft, kMismatch)}},
      {.name = "survivors",
       .summary = "after a death the others make a new group and go on, with the right data",
       .on_gpus = OnGpus::buffers,
       .draw = {.sizes = Sizes::most,
                .calls = calls_of({P::allreduce, P::reduce, P::allgatherv, P::alltoall, P::barrier}),
                .dtype = DType::int32,
                .count = 1009},
       .ways = {gone({.fault = "kill:rank={odd},op=2", .regroups = true})}},

      // ---- Ranks that stand still, hang or are slow
      {.name = "stopped",
       .summary = "a rank that stands still is waited for until the timeout, and then named by the others",
       .draw = {.calls = {{P::allreduce, "ring"},
                          {P::broadcast, "scatter_allgather"},
                          {P::allgather, "bruck"},
                          {P::alltoall, "pairwise"},
                          {P::allreduce, "rabenseifner"}},
                .variants = {0, 1, 2},
                .every_other_count = 50'000},
       // For a time beyond the moment when the others begin to wonder.
       .ways = {{.variant = 0,
                 .calls = 2,
                 .fault = "stop:rank={odd},op=2,step={step}",
                 .script = {await(kOdd, "stopped"), pause(milliseconds(400)), strike(kOdd, SIGCONT)}},
                waited_for(
                    {.variant = 1,
                     .fault = "stop:rank={odd},op=2,step={step}",
                     .script = {await(kOdd, "stopped"), note(), await(kOthers, "report"), strike(kOdd, SIGCONT)}},
                    kNoticed),
                waited_for({.variant = 2,
                            .script = {await(kAll, "call"), strike(kOdd, SIGSTOP), await(kOdd, "stopped"), note(),
                                       go_on(kAll), await(kOthers, "report"), strike(kOdd, SIGCONT)}},
                           kNoticed)}},
      {.name = "hung",
       .summary = "a rank that hangs in its own code, with calls of several groups in flight, is named by the others",
       .draw = {.sizes = Sizes::least_three,
                .calls = {{P::barrier}},
                .variants = {0, 0, 0, 1},
                .full_variants = times(7, {0, 0, 0, 1})},
       .ways = {tangled({.variant = 0, .script = {await(kOdd, "away")}}),
                tangled({.variant = 1, .script = {await(kOdd, "away"), strike(kOdd, SIGSTOP)}})},
       .odd = &tangled_rank},
      {.name = "why",
       .summary =
           "while a job hangs, coljob's sentence names the rank to blame and the cause: hangs of all kinds, drawn",
       .on_gpus = OnGpus::buffers,
       .draw = {.add = &add_hangs},
       .ways = {hanging({.variant = 0, .act = Act::stays_away}, {await(kOdd, "away")}),
                hanging({.variant = 1, .act = Act::stays_away}, {await(kOdd, "away"), strike(kOdd, SIGSTOP)}),
                hanging({.variant = 2, .act = Act::never_joins}, {await(kOdd, "away")}),
                hanging({.variant = 3, .act = Act::tangles}, {await(kOdd, "away")}),
                hanging({.variant = kFirstHang, .act = Act::hangs}, {})},
       .odd = [](const Case& c) { return c.variant == 3 ? tangled_rank(c) : drawn_rank(c); }},
      // In the second case there is room for a machine that is busy with other things.
      {.name = "late",
       .summary = "a rank that is slow, but not slower than the timeout, is waited for",
       .draw = {.calls = {{P::allreduce, "bde"},
                          {P::reduce, "linear"},
                          {P::reduce_scatter, "pairwise"},
                          {P::alltoallv, "pairwise"},
                          {P::barrier, "dissemination"}},
                .variants = {0, 1},
                .dtype = DType::int32,
                .every_other_count = 50'000},
       .ways = {{.variant = 0, .calls = 2, .fault = "delay:rank={odd},op=2,step={step},ms=300", .not_before = 0.3},
                {.variant = 1,
                 .calls = 2,
                 .fault = "delay:rank={odd},op=2,step={step},ms=700",
                 .timeout = milliseconds(1500),
                 .not_before = 0.7}}},
      // In the first calls the ranks find out that they can copy.
      {.name = "late_copy",
       .summary = "a rank that reads its peers' memory after their calls have failed reports no success",
       .draw = {.sizes = Sizes::fewest,
                .calls = {{P::alltoall, "shared"},
                          {P::scatter, "shared"},
                          {P::broadcast, "shared"},
                          {P::allgather, "shared"}},
                .quick_calls = 2,
                .dtype = DType::int32,
                .count = 20'000,
                .fits = &is_copied},
       .ways = {{.act = Act::copies_late,
                 .calls = 4,
                 .environment = "COL_CMA=on",
                 .script = {await(kOdd, "copying"), await(kOthers, "overwritten"), go_on(kOdd), await(kOdd, "report"),
                            go_on(kOthers)},
                 .timeout = seconds(2),
                 .said = kAnything,
                 .odd = kNoticed,
                 .within = 15}},
       .odd = [](const Case& c) { return c.ranks - 1; }},

      // ---- No room, no descriptors, no store, or a stranger in its place
      // The same on all ranks: if one rank cannot get it, the others cannot either. Others than shm use shared memory
      // for nothing, but their ranks meet by files as well.
      {.name = "shm_full",
       .summary = "no room for shared memory, or for files: a clean error, never SIGBUS",
       .draw = {.sizes = Sizes::fewest,
                .variants = up_to(4),
                .fits = [](Case& c) { return is_shm(c) || c.variant == 3; }},
       .ways = {in_time({.variant = 0, .shm_bytes = kSmallBytes, .said = {.codes = kNoRoom}}, seconds(3)),
                // Full after a few groups; those that stand go on.
                in_time({.variant = 1,
                         .act = Act::dups,
                         .shm_bytes = kFewGroupsBytes,
                         .dups = 30,
                         .said = {.codes = kNoRoom},
                         .later = "success"},
                        seconds(3)),
                in_time({.variant = 2, .file_bytes = kSmallBytes, .said = {.codes = kNoRoom}}, seconds(3)),
                // Not even a key of the store fits.
                in_time({.variant = 3, .file_bytes = 1, .said = {.codes = kNoRoom | kWell}}, seconds(3)),
                {.variant = 4, .shm_bytes = kRoomyBytes}}},
      // Case::variant is how many the odd rank may have beyond those that it starts with. Without a single one it
      // cannot even look for the others; 40 suffice for a group of four on any backend. From 1000 on, it has none when
      // the group stands: it needs none then, not even when a call takes so long that a rank looks for the reason.
      // Ranks that first talk to each other connect, so it is the second call.
      {.name = "descriptor_limit",
       .summary = "a rank without descriptors gets resource, the others an error, and none hangs",
       .draw = {.sizes = Sizes::fewest, .variants = {0, 4, 8, 40, 1000}, .full_variants = up_to(20, {40, 1000})},
       .ways = {in_time({.variant = 0,
                         .descriptors = -1,
                         .said = {.codes = kAnyError},
                         .odd = Said{.codes = any_of(ErrorCode::resource)},
                         .later = ""},
                        seconds(1)),
                in_time({.variant = 1,
                         .descriptors = -1,
                         .said = {.codes = kAnyError},
                         .odd = Said{.codes = any_of(ErrorCode::resource)},
                         .or_well = true,
                         .later = ""},
                        seconds(1)),
                {.variant = 40, .descriptors = -1, .timeout = seconds(1)},
                {.variant = 1000,
                 .calls = 2,
                 .fault = "delay:rank={next},ms=400",
                 .descriptors = 0,
                 .descriptors_late = true,
                 .timeout = seconds(1)}}},
      {.name = "taken_port",
       .summary = "a store's port that belongs to a silent stranger: a clean error in time",
       .draw = {.sizes = Sizes::fewest,
                .calls = {{P::barrier}},
                .fits = &is_on_one_host},  // the port is one of this host
       .ways = {in_time(
           {.store = "stranger",
            .said = {.codes = any_of(ErrorCode::timeout, ErrorCode::io, ErrorCode::mismatch, ErrorCode::unavailable)}},
           seconds(1))}},
      // A group that stands needs no directory, and neither does one that is made by what connects another. Over UCX,
      // and where the kernel cannot take memory with an error (before Linux 5.14), they meet by the directory, too. The
      // first one is where not even root can make a directory.
      {.name = "no_store",
       .summary = "a store that cannot be made, or is removed: a clean error in time",
       .draw = {.sizes = Sizes::fewest, .variants = up_to(3)},
       .ways = {in_time({.variant = 0, .store = "file:///dev/null/store", .said = {.codes = any_of(ErrorCode::io)}},
                        seconds(2)),
                in_time({.variant = 1,
                         .script = {await(kAll, "ready"), remove_store(), go_on(kAll)},
                         .said = {.codes = any_of(ErrorCode::io)}},
                        seconds(2)),
                {.variant = 2, .script = {await(kAll, "call"), remove_store(), go_on(kAll)}, .timeout = seconds(2)},
                in_time({.variant = 3,
                         .act = Act::dups,
                         .dups = 1,
                         .script = {await(kAll, "call"), remove_store(), go_on(kAll)},
                         .said = {.codes = any_of(ErrorCode::io)},
                         .or_well = true,
                         .later = "success"},
                        seconds(2))}},
  };
}

}  // namespace

std::span<const Drill> drills() {
  static const std::vector<Drill> all = table_of_drills();
  return all;
}

const Drill& drill_of(const Case& c) {
  for (const Drill& drill : drills()) {
    if (drill.name == c.property) return drill;
  }
  throw std::invalid_argument(fmt::format("'{}' is no drill; see colcheck --list", c.property));
}

const Way& Drill::way_of(const Case& c) const {
  const auto above = std::ranges::upper_bound(ways, c.variant, {}, &Way::variant);
  return above == ways.begin() ? ways.front() : *(above - 1);
}

bool Way::stops_at(std::string_view point) const {
  return std::ranges::any_of(script, [&](const Step& step) { return step.point == point; });
}

}  // namespace col::colcheck

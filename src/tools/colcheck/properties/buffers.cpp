// Buffers in every place: in place, at odd addresses, beside pages that must not be touched; what a call leaves alone
// in them, and what it leaves behind.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// In some cases in place, in some asynchronous.
void vary(const Form& form, Case& c) {
  c.in_place = has_in_place(c.primitive) && mix(c.seed, 1) % 4 == 0;
  c.asynchronous = form.may_be_asynchronous() && mix(c.seed, 2) % 4 == 0;
}

std::vector<Form> moving_forms(const Draw& draw) {
  std::vector<Form> forms = draw.forms();
  std::erase_if(forms, [](const Form& form) { return form.primitive == Primitive::barrier; });
  return forms;
}

// ---- in_place: In place, where the library allows it, by every algorithm.

void add_in_place(Draw& draw) {
  for (const Form& form : draw.forms()) {
    if (!has_in_place(form.primitive)) continue;
    draw.add(form, draw.quick() ? 1 : 8, [&](Case& c) {
      vary(form, c);
      c.in_place = true;
    });
  }
}

// ---- unaligned: Buffers that begin one element off a boundary of 64 bytes, or one byte off their type's own: the call
// works, or is refused as invalid_argument on all ranks before any data moves.

// Long enough for kernels that work on several elements at a time, and for messages that are not sent whole.
std::size_t count_for(const Case& c) {
  return mix(c.seed, 3) % 3 == 0 ? count_of_bytes(c, 10 << 10) + 3 : 67 + mix(c.seed, 4) % 64;
}

void add_unaligned(Draw& draw) {
  std::size_t turn = draw.selection().seed % 2;
  for (const Form& form : moving_forms(draw)) {
    const bool both = !draw.quick() || form.algorithm.empty() || form.is_native();
    const bool first = ++turn % 2 == 0;
    for (const Placement placement : {Placement::odd_element, Placement::odd_byte}) {
      if (!both && first != (placement == Placement::odd_element)) continue;
      draw.add(form, draw.times(form, 4), [&](Case& c) {
        c.placement = placement;
        c.count = count_for(c);
        vary(form, c);
        // A user's function gets the user's own pointers, and colcheck's wants them aligned.
        const bool users = c.op == Operator::user || c.op == Operator::ordered;
        if (!users || placement != Placement::odd_byte) return;
        c.op = Operator::sum;
        set_dtype(c, c.dtype);
      });
    }
  }
}

Finding run_unaligned(Rank& rank, const Case& c) {
  try {
    return run_whole_case(rank, c);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
  }
  // Nothing has moved, if what comes next finds nothing of it.
  Case aligned = c;
  aligned.placement = Placement::margins;
  const std::string problem = run_case(rank.group(), aligned);
  return Finding::of(problem.empty() ? "" : "after an unaligned buffer was refused, " + problem);
}

// ---- guard_pages: No call reads or writes a byte beside a buffer. Every input and output buffer ends where a page
// begins that must not be touched, or begins where one ends. This includes buffers of no bytes. On GPUs, a page with a
// pattern is beside the buffers: there, only writes are seen.

// Beyond what is sent whole.
constexpr std::size_t kLargeBytes = (12 << 10) + 24;

void add_guard_pages(Draw& draw) {
  constexpr std::array kGuards = {Placement::guard_after, Placement::guard_before};
  std::size_t turn = draw.selection().seed % 2;
  const int repeats = draw.quick() ? 1 : 4;
  for (const Form& form : moving_forms(draw)) {
    const auto guard = [&](Case& c) {
      vary(form, c);
      if (mix(c.seed, 3) % 4 == 0) c.count = count_of_bytes(c, kLargeBytes);
      c.placement = kGuards[turn++ % 2];
    };
    const bool is_plain = form.algorithm.empty() || form.is_native();
    draw.add(form, repeats * (is_plain || !draw.quick() ? 2 : 1), guard);
    draw.add(form, is_plain ? repeats : 0, [&](Case& c) {
      guard(c);
      c.count = 0;
    });
  }
}

// ---- untouched: What a call must leave alone is the same afterwards: inputs, what the root broadcasts, the outputs of
// ranks that get nothing, and the memory around. Where the call does not look, ranks pass what Call::ignored() draws.

void add_untouched(Draw& draw) {
  constexpr int kIgnored = 4;  // things to pass there
  for (const Form& form : moving_forms(draw)) {
    const Primitive primitive = form.primitive;
    const bool ignores = is_rooted(primitive) && primitive != Primitive::broadcast && primitive != Primitive::recv_any;
    const bool several = ignores && (!draw.quick() || form.algorithm.empty());
    draw.add(form, (several ? kIgnored : 1) * draw.times(form, 4), [&](Case& c) {
      if (mix(c.seed, 1) % 4 == 0) c.count = count_of_bytes(c, 9 << 10);
      c.in_place = primitive == Primitive::reduce && mix(c.seed, 2) % 4 == 0;
    });
  }
}

// ---- refill: The same memory serves call after call, each with new data that is different on every rank, without any
// other synchronisation: catches what a call leaves in scratch, and reads or writes that happen after it has returned.

constexpr std::uint64_t kRounds = 4;

// Small, around what shared memory sends whole, and beyond.
constexpr std::array<std::size_t, 5> kBytes = {40, 8 << 10, (8 << 10) + 8, 20 << 10, 72 << 10};
// For a case, if every rank sends to every rank.
constexpr std::size_t kMostQuickMemory = std::size_t{1} << 18, kMostMemory = std::size_t{1} << 22;

void add_refill(Draw& draw) {
  std::size_t turn = draw.selection().seed % kBytes.size();
  for (const Form& form : moving_forms(draw)) {
    if (draw.quick() && form.built_in != nullptr && draw.selection().algorithms.empty()) continue;
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place(form.primitive)) continue;
      draw.add(form, draw.times(form, 3), [&](Case& c) {
        const auto p = static_cast<std::size_t>(c.ranks);
        const std::size_t most = (draw.quick() ? kMostQuickMemory : kMostMemory) / (p * p);
        c.count = count_of_bytes(c, std::min(kBytes[turn++ % kBytes.size()], most));
        c.in_place = in_place;
        if (c.primitive == Primitive::recv_any) c.tag = c.tag / 8 * 8;  // each round has one of its own
      });
    }
  }
}

Finding run_refill(Rank& rank, const Case& c) {
  const Sides sides = sides_of(c, rank.size());
  // Blocks of a v-form are up to twice as long as the average.
  Call call(rank.group(), c, 2 * std::max(sides.in, sides.out) * size_of(c.dtype));
  std::string first_problem;
  for (std::uint64_t round = 0; round < kRounds; ++round) {  // to the end: the other ranks may find nothing wrong
    Case now = c;
    now.seed = mix(c.seed, 20, round);
    if (c.primitive == Primitive::recv_any) now.tag = c.tag + static_cast<int>(round);
    call.take(now);
    call.start();
    const std::string problem = call.problem();
    if (!problem.empty() && first_problem.empty())
      first_problem = fmt::format("in round {} of {}, {}", round + 1, kRounds, problem);
  }
  return Finding::of(std::move(first_problem));
}

}  // namespace

const Property kInPlace =
    in_group("in_place", "with input and output in the same memory, as documented, results are the same", &add_in_place,
             &run_whole_case, OnGpus::buffers);
const Property kUnaligned = in_group("unaligned", "buffers at odd addresses work, or are refused before any data moves",
                                     &add_unaligned, &run_unaligned, OnGpus::buffers);
const Property kGuardPages = in_group("guard_pages", "no byte beside an input or an output is read or written",
                                      &add_guard_pages, &run_whole_case, OnGpus::buffers);
const Property kUntouched =
    in_group("untouched", "inputs, and outputs of ranks that get nothing, are the same after a call", &add_untouched,
             &run_whole_case, OnGpus::buffers);
const Property kRefill =
    in_group("refill", "buffers that are filled anew and used again give the new results, round after round",
             &add_refill, &run_refill, OnGpus::buffers);

}  // namespace col::colcheck

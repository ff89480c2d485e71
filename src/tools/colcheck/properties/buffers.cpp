// Buffers in every place: in place, at odd addresses, beside pages that must not be touched.
#include <algorithm>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// In some cases in place, in some asynchronous.
void vary(const Form& form, Case& c) {
  c.in_place = has_in_place(c.primitive) && mix(c.seed, 1) % 4 == 0;
  c.asynchronous = form.may_be_asynchronous() && mix(c.seed, 2) % 4 == 0;
}

// ---- in_place: In place, where the library allows it, by every algorithm.

void add_in_place(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "in_place");
  const int repeats = draw.quick() ? 1 : 8;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const Form& form : draw.forms()) {
      if (!has_in_place(form.primitive)) continue;
      auto c = draw.next(form);
      if (!c) continue;
      c->in_place = true;
      c->asynchronous = form.may_be_asynchronous() && mix(c->seed, 1) % 4 == 0;
      all.push_back(*std::move(c));
    }
  }
}

// ---- unaligned: Buffers that begin one element off a boundary of 64 bytes, or one byte off their type's own: the call
// works, or is refused as invalid_argument on all ranks before any data moves.

// Long enough for kernels that work on several elements at a time, and for messages that are not sent whole.
std::size_t count_for(const Case& c) {
  return mix(c.seed, 3) % 3 == 0 ? count_of_bytes(c, 10 << 10) + 3 : 67 + mix(c.seed, 4) % 64;
}

void add_unaligned(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "unaligned");
  std::size_t turn = selection.seed % 2;
  const auto add = [&](const Form& form, Placement placement) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    c->placement = placement;
    c->count = count_for(*c);
    vary(form, *c);
    // A user's function gets the user's own pointers, and colcheck's wants them aligned.
    const bool users = c->op == Operator::user || c->op == Operator::ordered;
    if (users && placement == Placement::odd_byte) {
      c->op = Operator::sum;
      set_dtype(*c, c->dtype);
    }
    all.push_back(*std::move(c));
  };
  for (const Form& form : draw.forms()) {
    const bool both = !draw.quick() || form.algorithm.empty() || form.is_native();
    const bool first = ++turn % 2 == 0;
    const int repeats = draw.times(form) * (draw.quick() ? 1 : 4);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      if (both || first) add(form, Placement::odd_element);
    }
    for (int repeat = 0; repeat < repeats; ++repeat) {
      if (both || !first) add(form, Placement::odd_byte);
    }
  }
}

Finding run_unaligned(Rank& rank, const Case& c) {
  bool refused = false;
  {
    Call call(rank.group(), c);
    try {
      call.start();
      call.wait();
      if (const std::string problem = call.problem(); !problem.empty()) return Finding::fail(problem);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      refused = true;
    }
  }
  if (!refused) return Finding::pass();
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

void add_guard_pages(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "guard_pages");
  constexpr Placement kGuards[] = {Placement::guard_after, Placement::guard_before};
  std::size_t turn = selection.seed % 2;
  const auto add = [&](const Form& form, Placement placement, bool empty) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    vary(form, *c);
    if (mix(c->seed, 3) % 4 == 0) c->count = count_of_bytes(*c, kLargeBytes);
    c->placement = placement;
    if (empty) c->count = 0;
    all.push_back(*std::move(c));
  };
  const int repeats = draw.quick() ? 1 : 4;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const Form& form : draw.forms()) {
      add(form, kGuards[turn++ % 2], false);
      if (!draw.quick() || form.is_native() || form.algorithm.empty()) add(form, kGuards[turn % 2], false);
      if (form.algorithm.empty() || form.is_native()) add(form, kGuards[turn % 2], true);
    }
  }
}

}  // namespace

const Property kInPlace{"in_place",
                        "with input and output in the same memory, as documented, results are the same",
                        Property::Kind::group,
                        &add_in_place,
                        &run_whole_case,
                        OnGpus::buffers};
const Property kUnaligned{"unaligned",           "buffers at odd addresses work, or are refused before any data moves",
                          Property::Kind::group, &add_unaligned,
                          &run_unaligned,        OnGpus::buffers};
const Property kGuardPages{"guard_pages",         "no byte beside an input or an output is read or written",
                           Property::Kind::group, &add_guard_pages,
                           &run_whole_case,       OnGpus::buffers};

}  // namespace col::colcheck

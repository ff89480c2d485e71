// Buffers that begin one element off a boundary of 64 bytes, or one byte off their type's own: the call works, or is
// refused as invalid_argument on all ranks before any data moves.
#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// Long enough for kernels that work on several elements at a time, and for messages that are not sent whole.
std::size_t count_for(const Case& c) {
  return mix(c.seed, 3) % 3 == 0 ? count_of_bytes(c, 10 << 10) + 3 : 67 + mix(c.seed, 4) % 64;
}

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "unaligned");
  std::size_t turn = selection.seed % 2;
  const auto add = [&](const Form& form, Placement placement) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    c->placement = placement;
    c->count = count_for(*c);
    c->in_place = has_in_place(c->primitive) && mix(c->seed, 1) % 4 == 0;
    c->asynchronous = !form.is_native() && has_i_form(c->primitive) && mix(c->seed, 2) % 4 == 0;
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

Finding run(Rank& rank, const Case& c) {
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

}  // namespace

const Property kUnaligned{"unaligned",
                          "buffers at odd addresses work, or are refused before any data moves",
                          Property::Kind::group,
                          &cases,
                          &run,
                          OnGpus::buffers};

}  // namespace col::colcheck

// In place, where the library allows it, by every algorithm.
#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "in_place");
  const int repeats = draw.quick() ? 1 : 8;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const Form& form : draw.forms()) {
      if (!has_in_place(form.primitive)) continue;
      auto c = draw.next(form);
      if (!c) continue;
      c->in_place = true;
      c->asynchronous = !form.is_native() && has_i_form(form.primitive) && mix(c->seed, 1) % 4 == 0;
      all.push_back(*std::move(c));
    }
  }
}

Finding run(Rank& rank, const Case& c) {
  return Finding::of(run_case(rank.group(), c));
}

}  // namespace

const Property kInPlace{"in_place",
                        "with input and output in the same memory, as documented, results are the same",
                        Property::Kind::group,
                        &cases,
                        &run,
                        OnGpus::buffers};

}  // namespace col::colcheck

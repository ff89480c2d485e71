// Calls that are prepared once and started again: <col/prepared.hpp>.
#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// ---- prepared: A collective that was prepared gives the result of the call at every start, beside ranks that have not
// prepared theirs.

void add_prepared(Draw& draw) {
  for (const Form& form : draw.forms()) {
    if (!collective_of(form.primitive) || !form.may_be_asynchronous()) continue;
    draw.add(form, draw.times(form, 4), [](Case& c) { c.asynchronous = true; });
  }
}

Finding run_prepared(Rank& rank, const Case& c) {
  constexpr int kStarts = 3;
  Call call(rank.group(), c);
  const bool prepares = c.ranks == 1 || (mix(c.seed, 5) + static_cast<std::uint64_t>(rank.rank())) % 3 != 0;
  if (prepares) call.prepare();
  for (int start = 0; start < kStarts; ++start) {
    if (start > 0) call.clear_output();
    call.start();
    call.wait();
    if (const std::string problem = call.problem(); !problem.empty())
      return Finding::fail(prepares ? "prepared: " + problem : problem);
  }
  return Finding::pass();
}

}  // namespace

const Property kPrepared =
    in_group("prepared", "a collective that was prepared gives the result of the call at every start", &add_prepared,
             &run_prepared, OnGpus::buffers);

}  // namespace col::colcheck

// No call reads or writes a byte beside a buffer. Every input and output buffer ends where a page begins that must not
// be touched, or begins where one ends. This includes buffers of no bytes. On GPUs, a page with a pattern is beside the
// buffers: there, only writes are seen.
#include <algorithm>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/plain_call.hpp"

namespace col::colcheck {
namespace {

// Beyond what is sent whole.
constexpr std::size_t kLargeBytes = (12 << 10) + 24;

void vary(const Form& form, Case& c) {
  c.in_place = has_in_place(c.primitive) && mix(c.seed, 1) % 4 == 0;
  c.asynchronous = !form.is_native() && has_i_form(c.primitive) && mix(c.seed, 2) % 4 == 0;
  if (mix(c.seed, 3) % 4 == 0) c.count = count_of_bytes(c, kLargeBytes);
}

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "guard_pages");
  constexpr Placement kGuards[] = {Placement::guard_after, Placement::guard_before};
  std::size_t turn = selection.seed % 2;
  const auto add = [&](const Form& form, Placement placement, bool empty) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    vary(form, *c);
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

// recv_any, as Call keeps what comes in memory of its own until it knows the sources.
Finding run_recv_any(Rank& rank, const Case& c) {
  const Part part = part_of(c, rank.rank(), rank.size());
  Memory in, out;
  const auto assign = [&](Memory& memory, const Bytes& content, Side side) {
    memory.assign(content, c.placement, size_of(c.dtype), device_of(c, rank.rank(), side));
  };
  assign(in, part.input, Side::input);
  assign(out, Bytes(part.writes ? part.output.size() : 0), Side::output);
  const std::size_t received = out.size() / size_of(c.dtype);
  const Views views{.in = in.view(0, c.count, c.dtype), .out = out.view(0, received, c.dtype)};
  call_plainly(rank.group(), c, views, options_of(c, rank.rank()));
  if (part.writes) out.expect(0, part.output);
  const std::string problem = in.problem(size_of(c.dtype));
  return Finding::of(problem.empty() ? out.problem(size_of(c.dtype)) : problem);
}

Finding run(Rank& rank, const Case& c) {
  if (c.primitive == Primitive::recv_any) return run_recv_any(rank, c);
  return Finding::of(run_case(rank.group(), c));
}

}  // namespace

const Property kGuardPages{
    "guard_pages",  "no byte beside an input or an output is read or written", Property::Kind::group, &cases, &run,
    OnGpus::buffers};

}  // namespace col::colcheck

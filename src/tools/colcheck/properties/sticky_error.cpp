// After an error, a group is broken and says so: every later call ends at once and names the first cause, the inputs
// are unchanged, and a group of the same name can be made again and works.
#include <array>
#include <functional>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kStickyCount = 1000;
// What a mismatch is made of: calls that no rank can end without hearing of all others.
constexpr std::array<Primitive, 4> kBreakers = {Primitive::allreduce, Primitive::allgather, Primitive::alltoall,
                                                Primitive::reduce_scatter};

using Data = std::vector<std::int32_t>;

void add_sticky_error(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    // Each takes as long as a diagnosis does. Where most agree, that is less time than between two.
    for (std::size_t i = 0; i < (draw.quick() ? 1 : kBreakers.size()); ++i) {
      Case& c =
          draw.add(backend, kBreakers[draw.number() % kBreakers.size()], 0, draw.quick() ? draw.ranks().back() : 0);
      c.count = kStickyCount;
      c.dtype = DType::int32;
    }
  }
}

// One call of the primitive, of `count` elements per rank or block.
void call(Group& group, Primitive primitive, const Data& in, Data& out, std::size_t count) {
  Case c;
  c.primitive = primitive;
  c.count = count;
  const Sides sides = sides_of(c, group.size());
  call_plainly(group, c, {{in.data(), sides.in, DType::int32}, {out.data(), sides.out, DType::int32}}, {});
}

// What a later call does wrong; empty when it throws what it should.
std::string not_sticky(const char* name, const Error& first, const std::function<void()>& later) {
  try {
    later();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::aborted)
      return fmt::format("{} in the broken group throws {}, not aborted", name, to_string(error.code()));
    if (error.message().find(to_string(first.code())) == std::string::npos ||
        error.message().find(first.message()) == std::string::npos)
      return fmt::format("{} in the broken group does not name the first cause, but says: {}", name, error.message());
    return {};
  }
  return fmt::format("{} in the broken group returns as if all were well", name);
}

std::string all_sticky(Group& group, const Error& first, Work& open) {
  Data data(kStickyCount, 1);
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"allreduce", [&] { group.allreduce(data); }},
      {"ibroadcast", [&] { std::ignore = group.ibroadcast(data); }},
      {"barrier", [&] { group.barrier(); }},
      {"send", [&] { group.send(data, (group.rank() + 1) % group.size()); }},
      {"irecv", [&] { std::ignore = group.irecv(data, (group.rank() + 1) % group.size()); }}};
  for (const auto& [name, later] : calls) {
    std::string problem = not_sticky(name, first, later);
    if (!problem.empty()) return problem;
  }
  // What was in flight has ended with the cause itself.
  try {
    open.wait();
  } catch (const Error& error) {
    return error.code() == first.code() ? "" : fmt::format("what was in flight ended with {}", error.what());
  }
  return "what was in flight when the group broke has ended well";
}

Finding run_sticky_error(Rank& rank, const Case& c) {
  const GroupSpec spec = rank.spec_of_all(fmt::format("{}/sticky", rank.group().name()));
  Context& context = rank.context();
  Data in(static_cast<std::size_t>(rank.size()) * (c.count + 1)), out(in.size()), never(1);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<std::int32_t>(mix(c.seed, static_cast<std::uint64_t>(rank.rank()), i));
  const Data before = in;
  std::string problem;
  {
    Group group = context.init_group(spec);
    Work open = group.irecv(never, (rank.rank() + 1) % rank.size(), {.tag = 1});
    try {
      call(group, c.primitive, in, out, c.count + (rank.rank() == rank.size() - 1 ? 1 : 0));
      problem = "a call with another count than the others' returned";
    } catch (const Error& error) {
      problem = error.code() == ErrorCode::mismatch
                    ? all_sticky(group, error, open)
                    : fmt::format("{}, where the last rank's count differs", error.what());
    }
  }
  context.destroy_group(spec.name);
  if (problem.empty() && in != before) problem = "the input of the call that failed has changed";
  // Without waiting for the others, who may still be in the broken group.
  Group anew = context.init_group(spec);
  std::vector<std::int64_t> sum{rank.rank() + 1};
  anew.allreduce(sum);
  const std::int64_t n = rank.size();
  if (problem.empty() && sum[0] != n * (n + 1) / 2) problem = fmt::format("the group made anew adds up to {}", sum[0]);
  context.destroy_group(spec.name);
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kStickyError =
    in_group("sticky_error", "a broken group names the first cause at every call, and can be made anew",
             &add_sticky_error, &run_sticky_error, OnGpus::nothing, 2);

}  // namespace col::colcheck

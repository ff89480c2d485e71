// Buffers that overlap other than in place are refused on the rank that passes them, before any data moves: the memory
// is as it was, and the group goes on. The root alone makes the call where it alone has both buffers.
#include <array>
#include <vector>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/refusal.hpp"

namespace col::colcheck {
namespace {

// Case::variant.
enum class Overlap : std::uint64_t {
  after,       // the shorter begins one element after where it might
  before,      // one element before; the block of another rank, where there are blocks
  last_byte,   // the output begins with the last byte of the input
  first_byte,  // and the other way round
  list,        // two outputs of a list share an element
  twice,       // are the same
  batch,       // a received message shares memory with another one, or with one that is sent
};
constexpr std::array kOfTwo = {Overlap::after, Overlap::before, Overlap::last_byte, Overlap::first_byte};
constexpr std::array kOfList = {Overlap::list, Overlap::twice};

bool has_two_sides(Primitive primitive) {
  return primitive != Primitive::broadcast && primitive != Primitive::barrier && primitive != Primitive::send_recv &&
         primitive != Primitive::recv_any && primitive != Primitive::batch;
}

// As a free function, with one tensor for each rank.
bool has_output_list(Primitive primitive) {
  return primitive == Primitive::allgather || primitive == Primitive::gather || primitive == Primitive::alltoall;
}

void add_aliasing(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "aliasing");
  const int repeats = draw.quick() ? 1 : 6;
  for (const Form& form : draw.forms()) {
    if (!form.algorithm.empty() && selection.algorithms.empty()) continue;  // nothing gets that far
    const auto add = [&](Overlap overlap, bool several_ranks) {
      auto c = draw.next(form);
      if (!c || (several_ranks && c->ranks == 1)) return;
      c->variant = static_cast<std::uint64_t>(overlap);
      c->count = 2 + mix(c->seed, 1) % 600;
      all.push_back(*std::move(c));
    };
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (const Overlap overlap : kOfTwo) {
        if (has_two_sides(form.primitive)) add(overlap, false);
      }
      for (const Overlap overlap : kOfList) {
        if (has_output_list(form.primitive)) add(overlap, true);
      }
      if (form.primitive == Primitive::batch) add(Overlap::batch, false);
    }
  }
}

// Where input and output begin in one piece of memory, in bytes.
struct Places {
  std::size_t in = 0, out = 0;
};

Places places_of(const Case& c, const Sides& sides, int rank, int size) {
  const std::size_t element = size_of(c.dtype), block = c.count * element;
  const std::size_t in_bytes = sides.in * element, out_bytes = sides.out * element;
  const std::size_t start = in_bytes + out_bytes;  // with room on the left
  const auto place_of_block = [&](int number) { return start + static_cast<std::size_t>(number) * block; };
  const bool cut = in_bytes != out_bytes;
  std::size_t shorter = 0;
  switch (static_cast<Overlap>(c.variant)) {
    case Overlap::last_byte:
      return {start, start + in_bytes - 1};
    case Overlap::first_byte:
      return {start, start + 1 - out_bytes};
    case Overlap::before:
      shorter = cut ? place_of_block((rank + 1) % size) : start - element;
      break;
    default:
      shorter = place_of_block(cut ? rank : 0) + element;
  }
  return in_bytes > out_bytes ? Places{start, shorter} : Places{shorter, start};
}

void call_with_list(Rank& rank, const Case& c, std::byte* memory) {
  const Context::Scope scope(rank.context());
  const Group group = rank.group();
  const auto size = static_cast<std::size_t>(rank.size());
  const std::size_t element = size_of(c.dtype);
  const TensorView input(memory, c.count, c.dtype);
  std::vector<TensorView> outputs;
  for (std::size_t r = 0; r < size; ++r)
    outputs.emplace_back(memory + (r + 1) * (c.count + 1) * element, c.count, c.dtype);
  std::byte* const first = static_cast<std::byte*>(outputs.front().data);
  outputs.back().data = c.variant == static_cast<std::uint64_t>(Overlap::twice) ? first : first + element;
  Options options = options_of(c, rank.rank());
  options.group = group.name();
  options.timeout = kRefusedTimeout;
  if (c.primitive == Primitive::allgather) return col::allgather(outputs, input, options);
  if (c.primitive == Primitive::gather) return col::gather(outputs, input, options);
  col::alltoall(outputs, std::vector<ConstTensorView>(size, input), options);
}

void call_batch(Rank& rank, const Case& c, std::byte* memory) {
  const int me = rank.rank();
  const std::size_t element = size_of(c.dtype);
  const TensorView one(memory, c.count, c.dtype), two(memory + element, c.count, c.dtype);
  const TensorView apart(memory + (c.count + 1) * element, c.count, c.dtype);
  std::vector<Message> messages = {Message::send(one, me, c.tag), Message::recv(two, me, c.tag)};
  if (mix(c.seed, 2) % 2 == 0)
    messages = {Message::send(apart, me, c.tag), Message::send(apart, me, c.tag), Message::recv(one, me, c.tag),
                Message::recv(two, me, c.tag)};
  rank.group().batch(messages);
}

std::string refused_call_problem(Rank& rank, const Case& c) {
  const Sides sides = sides_of(c, rank.size());
  const std::size_t element = size_of(c.dtype);
  Bytes memory(3 * (sides.in + sides.out + static_cast<std::size_t>(rank.size()) + 2) * element);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(mix(c.seed, 3, i));
  const Bytes before = memory;
  const std::vector<std::size_t> counts(static_cast<std::size_t>(rank.size()), c.count);
  const Places places = places_of(c, sides, rank.rank(), rank.size());
  const Views views{.in = {memory.data() + places.in, sides.in, c.dtype},
                    .out = {memory.data() + places.out, sides.out, c.dtype},
                    .in_counts = counts,
                    .out_counts = counts};
  const std::string problem = refusal_problem([&] {
    const auto overlap = static_cast<Overlap>(c.variant);
    if (overlap == Overlap::batch) return call_batch(rank, c, memory.data());
    if (overlap == Overlap::list || overlap == Overlap::twice) return call_with_list(rank, c, memory.data());
    Options options = options_of(c, rank.rank());
    options.timeout = kRefusedTimeout;
    call_plainly(rank.group(), c, views, options);
  });
  return problem.empty() ? difference("the memory of the refused call", memory, before) : problem;
}

Finding run_aliasing(Rank& rank, const Case& c) {
  const auto overlap = static_cast<Overlap>(c.variant);
  if (c.count < 2 || (rank.size() == 1 && (overlap == Overlap::list || overlap == Overlap::twice)))
    return Finding::skip("so few elements or tensors cannot overlap");
  const bool calls = !is_rooted(c.primitive) || rank.rank() == c.root;
  return Finding::of(problem_or_next(calls ? refused_call_problem(rank, c) : "", rank.group(), c));
}

}  // namespace

const Property kAliasing{"aliasing", "overlaps other than in place are refused before any data moves",
                         Property::Kind::group, &add_aliasing, &run_aliasing};

}  // namespace col::colcheck

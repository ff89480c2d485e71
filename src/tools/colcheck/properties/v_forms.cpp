// Blocks with very different counts: none, all with one rank, skewed, at random. The v-forms have no blocks in another
// order than that of the ranks, so batches of messages test these.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// Case::variant. What rank `from` has for rank `to`; with one number per rank, both are that rank.
enum class Shape : std::uint64_t { every_other, nothing, one_gives_all, one_takes_all, skewed, random, own_only };
constexpr std::uint64_t kShapeCount = 7;

using Counts = std::vector<std::size_t>;

std::size_t count_from_to(const Case& c, int from, int to) {
  // In place, a rank gets as much from each as it gives to it.
  if (c.primitive == Primitive::alltoallv && c.in_place && from > to) std::swap(from, to);
  const auto i = static_cast<std::uint64_t>(from), j = static_cast<std::uint64_t>(to);
  const auto size = static_cast<std::uint64_t>(c.ranks);
  const std::uint64_t chosen = mix(c.seed, 1) % size;
  const std::uint64_t drawn = mix(c.seed, 100 + i, j);
  switch (static_cast<Shape>(c.variant % kShapeCount)) {
    case Shape::every_other:
      return (i + j / 2) % 2 == 0 ? 0 : c.count;
    case Shape::nothing:
      return 0;
    case Shape::one_gives_all:
      return i == chosen ? c.count : 0;
    case Shape::one_takes_all:
      return j == size - 1 - chosen ? 3 * c.count : 0;
    case Shape::skewed:
      return (4 * c.count) >> std::min<std::uint64_t>((i + j + chosen) % size, 20);
    case Shape::random:
      return drawn % 4 == 0 ? 0 : (drawn >> 8) % (2 * c.count + 1);
    default:
      return i == j ? c.count + i : 0;
  }
}

Part part_for(const Case& c, int rank) {
  return part_of(c, rank, c.ranks, &count_from_to);
}

// ---- The call

Counts shuffled_ranks(const Case& c, std::uint64_t salt) {
  Counts order(static_cast<std::size_t>(c.ranks));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(mix(c.seed, 7, salt));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// The place of each rank's block, if the blocks are in `order` with a gap of one element between them.
Counts displacements(const Counts& counts, const Counts& order) {
  Counts places(counts.size());
  std::size_t next = 0;
  for (const std::size_t r : order) {
    places[r] = next;
    next += counts[r] + 1;
  }
  return places;
}

// Puts the blocks of `packed` where they belong.
Bytes spread(const Bytes& packed, const Counts& counts, const Counts& places, std::size_t element_size) {
  Bytes all(packed.size() + counts.size() * element_size, std::byte{0x3c});
  const std::byte* from = packed.data();
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const std::size_t bytes = counts[r] * element_size;
    if (bytes > 0) std::memcpy(all.data() + places[r] * element_size, from, bytes);
    from += bytes;
  }
  return all;
}

std::string problem_with_batch(Group& group, const Case& c) {
  const Part part = part_for(c, group.rank());
  const std::size_t size = size_of(c.dtype);
  const auto me = static_cast<std::uint64_t>(group.rank());
  const Counts in_places = displacements(part.in_counts, shuffled_ranks(c, 2 * me));
  const Counts out_places = displacements(part.out_counts, shuffled_ranks(c, 2 * me + 1));
  const Bytes wanted = spread(part.output, part.out_counts, out_places, size);
  Memory first, second;
  first.assign(spread(part.input, part.in_counts, in_places, size), c.placement, size,
               device_of(c, group.rank(), Side::input));
  second.assign(Bytes(wanted.size(), std::byte{0x3c}), c.placement, size, device_of(c, group.rank(), Side::output));
  std::vector<Message> messages;
  for (std::size_t r = 0; r < part.in_counts.size(); ++r) {
    const ConstTensorView sent = first.view(in_places[r] * size, part.in_counts[r], c.dtype);
    const TensorView received = second.view(out_places[r] * size, part.out_counts[r], c.dtype);
    messages.push_back(Message::send(sent, static_cast<int>(r), c.tag));
    messages.push_back(Message::recv(received, static_cast<int>(r), c.tag));
  }
  group.batch(messages);
  second.expect(0, wanted);
  const std::string problem = first.problem(size);
  return problem.empty() ? second.problem(size) : problem;
}

// ---- The property

void add_v_forms(Draw& draw) {
  constexpr DType kDTypes[] = {DType::uint8, DType::int32, DType::float16, DType::float32, DType::float64};
  std::uint64_t turn = draw.selection().seed % kShapeCount;
  for (const Form& form : draw.forms()) {
    if (!is_v_form(form.primitive) && form.primitive != Primitive::batch) continue;
    const bool few = draw.quick() && form.built_in != nullptr && draw.selection().algorithms.empty();
    constexpr auto kAll = static_cast<int>(kShapeCount);
    draw.add(form,
             few            ? 3
             : draw.quick() ? kAll
                            : 3 * kAll,
             [&](Case& c) {
               c.variant = turn++ % kShapeCount;
               c.dtype = kDTypes[mix(c.seed, 2) % std::size(kDTypes)];
               c.op = Operator::sum;
               c.count = mix(c.seed, 3) % 5 == 0 ? count_of_bytes(c, 6 << 10) : 1 + mix(c.seed, 4) % 90;
               c.in_place = has_in_place(form.primitive) && mix(c.seed, 5) % 3 == 0;
             });
  }
}

Finding run_v_forms(Rank& rank, const Case& c) {
  if (c.primitive == Primitive::batch) return Finding::of(problem_with_batch(rank.group(), c));
  Call call(rank.group(), c, part_for(c, rank.rank()));
  call.start();
  return Finding::of(call.problem());
}

}  // namespace

const Property kVForms =
    in_group("v_forms", "blocks may have any counts: none, all with one rank, skewed, in any place", &add_v_forms,
             &run_v_forms, OnGpus::buffers);

}  // namespace col::colcheck

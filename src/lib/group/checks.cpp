#include "group/checks.hpp"

#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/reduce.hpp"
#include "group/collective_kind.hpp"

namespace col::group {
namespace {

template <class... Args>
[[noreturn]] void refuse(const Shape& shape, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...), shape.group, shape.rank,
              shape.world_rank);
}

// Bytes of this many elements of any type fit a size_t.
constexpr std::size_t kMaxCount = std::numeric_limits<std::size_t>::max() / 16;

void require_count(std::size_t count, std::size_t expected, std::string_view role, std::string_view rule,
                   const Request& request, const Shape& shape) {
  if (count != expected)
    refuse(shape, "{}: {} has {} elements, but must have {} ({})", to_string(request.collective), role, count, expected,
           rule);
}

std::size_t times_size(std::size_t count, const Shape& shape) {
  if (count > kMaxCount / static_cast<std::size_t>(shape.size))
    refuse(shape, "{} elements from each of {} ranks do not fit into memory", count, shape.size);
  return count * static_cast<std::size_t>(shape.size);
}

std::size_t sum_of(std::span<const std::size_t> counts, std::string_view role, const Request& request,
                   const Shape& shape) {
  if (counts.size() != static_cast<std::size_t>(shape.size))
    refuse(shape, "{}: {} has {} entries, but the group has {} ranks; give one count per rank",
           to_string(request.collective), role, counts.size(), shape.size);
  std::size_t sum = 0;
  for (const std::size_t count : counts) {
    if (count > kMaxCount || sum + count > kMaxCount)
      refuse(shape, "{}: {} holds {}, more than memory can hold: a negative count?", to_string(request.collective),
             role, count);
    sum += count;
  }
  return sum;
}

void check_operator(const Request& request, const Shape& shape) {
  const Op& op = request.op;
  const DType dtype = request.in.dtype;
  if (op.kind() == Op::Kind::user && !op.user_function())
    refuse(shape, "the user-defined operator '{}' has no function", op.name());
  if (!core::is_reducible(op, dtype))
    refuse(shape, "{} is not defined on {}: the bitwise operators take integer types only", op.name(),
           to_string(dtype));
  const bool integer = core::accumulation_type(dtype) == dtype && dtype != DType::float32 && dtype != DType::float64;
  if (op.kind() == Op::Kind::premul_sum && integer && !core::is_whole(op.scale()))
    refuse(shape, "premul_sum on {} needs a whole number, not {}", to_string(dtype), op.scale());
}

std::size_t before(std::span<const std::size_t> counts, std::size_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
}

// Where the shorter of input and output lies in the longer one when the call is in place.
struct InPlace {
  ConstTensorView placed, allowed;
};

InPlace in_place_rule(const Request& request, const Shape& shape) {
  const auto rank = static_cast<std::size_t>(shape.rank);
  const ConstTensorView in = request.in;
  const ConstTensorView out = request.out;
  switch (request.collective) {
    case Collective::allgather:
    case Collective::gather:
      return {in, out.slice(rank * in.count, in.count)};
    case Collective::allgatherv:
    case Collective::gatherv:
      return {in, out.slice(before(request.out_counts, rank), in.count)};
    case Collective::reduce_scatter:
    case Collective::scatter:
      return {out, in.slice(rank * out.count, out.count)};
    case Collective::reduce_scatterv:
    case Collective::scatterv:
      return {out, in.slice(before(request.in_counts, rank), out.count)};
    default:
      return {in, out};
  }
}

void check_overlap(const Request& request, const Shape& shape) {
  if (request.in.empty() || request.out.empty() || !overlaps(request.in, request.out)) return;
  if (is_in_place(request, shape)) return;
  refuse(shape,
         "{}: input and output overlap other than in place; use separate buffers, or exactly the same memory as "
         "documented in <col/group.hpp>",
         to_string(request.collective));
}

void check_counts(const Request& request, const Shape& shape, bool is_root) {
  const std::size_t in = request.in.count;
  const std::size_t out = request.out.count;
  switch (request.collective) {
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan:
      return require_count(out, in, "the output", "as many as the input", request, shape);
    case Collective::reduce:
      if (is_root) require_count(out, in, "the root's output", "as many as the input", request, shape);
      return;
    case Collective::allgather:
      return require_count(out, times_size(in, shape), "the output", "group size x input", request, shape);
    case Collective::gather:
      if (is_root) require_count(out, times_size(in, shape), "the root's output", "group size x input", request, shape);
      return;
    case Collective::scatter:
      if (is_root) require_count(in, times_size(out, shape), "the root's input", "group size x output", request, shape);
      return;
    case Collective::allgatherv: {
      const std::size_t total = sum_of(request.out_counts, "counts", request, shape);
      require_count(in, request.out_counts[static_cast<std::size_t>(shape.rank)], "the input", "counts[own rank]",
                    request, shape);
      return require_count(out, total, "the output", "the sum of counts", request, shape);
    }
    case Collective::gatherv:
      if (!is_root) return;
      require_count(out, sum_of(request.out_counts, "counts", request, shape), "the root's output", "the sum of counts",
                    request, shape);
      return require_count(in, request.out_counts[static_cast<std::size_t>(shape.rank)], "the root's input",
                           "counts[own rank]", request, shape);
    case Collective::scatterv:
      if (!is_root) return;
      require_count(in, sum_of(request.in_counts, "counts", request, shape), "the root's input", "the sum of counts",
                    request, shape);
      return require_count(out, request.in_counts[static_cast<std::size_t>(shape.rank)], "the root's output",
                           "counts[own rank]", request, shape);
    case Collective::reduce_scatter:
      return require_count(in, times_size(out, shape), "the input", "group size x output", request, shape);
    case Collective::reduce_scatterv:
      require_count(in, sum_of(request.in_counts, "counts", request, shape), "the input", "the sum of counts", request,
                    shape);
      return require_count(out, request.in_counts[static_cast<std::size_t>(shape.rank)], "the output",
                           "counts[own rank]", request, shape);
    case Collective::alltoall:
      if (in % static_cast<std::size_t>(shape.size) != 0)
        refuse(shape, "alltoall: {} elements cannot be cut into {} equal blocks, one per rank; use alltoallv", in,
               shape.size);
      return require_count(out, in, "the output", "as many as the input", request, shape);
    case Collective::alltoallv:
      require_count(in, sum_of(request.in_counts, "in_counts", request, shape), "the input", "the sum of in_counts",
                    request, shape);
      return require_count(out, sum_of(request.out_counts, "out_counts", request, shape), "the output",
                           "the sum of out_counts", request, shape);
    default:
      return;
  }
}

}  // namespace

bool overlaps(ConstTensorView a, ConstTensorView b) {
  const auto* a_begin = static_cast<const std::byte*>(a.data);
  const auto* b_begin = static_cast<const std::byte*>(b.data);
  return std::less<>{}(a_begin, b_begin + b.bytes()) && std::less<>{}(b_begin, a_begin + a.bytes());
}

bool is_in_place(const Request& request, const Shape& shape) {
  const auto [placed, allowed] = in_place_rule(request, shape);
  return placed.count > 0 && placed.data == allowed.data && placed.count == allowed.count;
}

void check_tensor(ConstTensorView view, std::string_view role, const Shape& shape) {
  if (size_of(view.dtype) == 0)
    refuse(shape, "{} has an unknown dtype ({}); use one of col::DType", role, static_cast<int>(view.dtype));
  if (view.data == nullptr && view.count > 0) refuse(shape, "{} has {} elements but a null pointer", role, view.count);
  if (view.count > kMaxCount)
    refuse(shape, "{} has {} elements, more than memory can hold: a negative count?", role, view.count);
}

void check_peer(int peer, std::string_view role, const Shape& shape) {
  if (peer < 0 || peer >= shape.size)
    refuse(shape, "{} {} is not in the group: its ranks are 0 to {}", role, peer, shape.size - 1);
}

Sides sides_of(const Request& request, const Shape& shape) {
  const bool is_root = is_rooted(request.collective) && request.root == shape.rank;
  return {.in = request.collective != Collective::broadcast && (!scatters_from_root(request.collective) || is_root),
          .out = !gathers_to_root(request.collective) || is_root};
}

void check(const Request& request, const Shape& shape) {
  const bool rooted = is_rooted(request.collective);
  if (rooted) check_peer(request.root, "root", shape);
  const bool is_root = rooted && request.root == shape.rank;
  const auto [uses_in, uses_out] = sides_of(request, shape);
  if (uses_in) check_tensor(request.in, "the input", shape);
  if (uses_out) check_tensor(request.out, "the output", shape);
  if (uses_in && uses_out && request.collective != Collective::barrier && request.in.dtype != request.out.dtype)
    refuse(shape, "{}: the input is {}, the output {}; a collective does not convert", to_string(request.collective),
           to_string(request.in.dtype), to_string(request.out.dtype));
  check_counts(request, shape, is_root);
  if (is_reduction(request.collective)) check_operator(request, shape);
  if (uses_in && uses_out) check_overlap(request, shape);
}

}  // namespace col::group

#include "group/call/checks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/kernels/reduce.hpp"
#include "core/mapping.hpp"
#include "group/call/order.hpp"

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

std::string_view operators_of(ElementKind kind) {
  if (kind == ElementKind::boolean) return "booleans take band, bor, bxor, min and max";
  if (kind == ElementKind::complex) return "complex numbers take sum, product, avg and premul_sum";
  if (kind == ElementKind::opaque) return "opaque elements take a user's function, Op::user()";
  return "the bitwise operators take integer types only";
}

void check_operator(const Request& request, const Shape& shape) {
  const Op& op = request.op;
  const DType dtype = request.in.dtype;
  if (op.kind() == Op::Kind::user && !op.user_function())
    refuse(shape, "the user-defined operator '{}' has no function", op.name());
  if (!core::is_reducible(op, dtype))
    refuse(shape, "{} is not defined on {}: {}", op.name(), to_string(dtype), operators_of(row_of(dtype).kind));
  if (size_of(dtype) > kMaxReducedBytes)
    refuse(shape,
           "an operator combines elements of up to {} bytes, not {}; send larger ones with a call that moves data",
           kMaxReducedBytes, to_string(dtype));
  if (op.kind() == Op::Kind::premul_sum && row_of(dtype).is_integer() && !core::is_whole(op.scale()))
    refuse(shape, "premul_sum on {} needs a whole number, not {}", to_string(dtype), op.scale());
}

std::size_t before(std::span<const std::size_t> counts, std::size_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
}

// Where the shorter of input and output is inside the longer one, if the call is in place.
struct InPlace {
  ConstTensorView placed, allowed;
};

InPlace in_place_rule(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  const auto rank = static_cast<std::size_t>(shape.rank);
  const ConstTensorView in = request.in;
  const ConstTensorView out = request.out;
  // Where this rank's block of a longer side begins.
  const auto offset = [&](std::span<const std::size_t> counts, std::size_t count) {
    return row.has_counts() ? before(counts, rank) : rank * count;
  };
  if (row.in == Extent::block) return {in, out.slice(offset(request.out_counts, in.count), in.count)};
  if (row.out == Extent::block) {
    if (request.order == Order::tree && in.count != *length_of_one(request, shape)) return {out, {}};
    return {out, in.slice(offset(request.in_counts, out.count), out.count)};
  }
  return {in, out};
}

void check_overlap(const Request& request, const Shape& shape) {
  if (request.in.empty() || request.out.empty() || !overlaps(request.in, request.out)) return;
  if (is_in_place(request, shape)) return;
  refuse(shape,
         "{}: input and output overlap other than in place; use separate buffers, or exactly the same memory as "
         "documented in <col/group.hpp>",
         to_string(request.collective));
}

// How a side is called in a message. No string is made: most calls need none.
std::string_view role_of(bool is_output, bool of_root) {
  if (of_root) return is_output ? "the root's output" : "the root's input";
  return is_output ? "the output" : "the input";
}

// In the tree's order, the input has any number of contributions.
void check_contributions(std::size_t length, std::string_view rule, const Request& request, const Shape& shape) {
  if (length == 0 ? request.in.count == 0 : request.in.count % length == 0) return;
  refuse(shape,
         "{}: in the tree's order, the input has whole contributions of {} elements ({}); {} elements are not a number "
         "of those",
         to_string(request.collective), length, rule, request.in.count);
}

// Both sides are the same vector, or the same blocks.
void check_equal_sides(const Request& request, const Shape& shape, bool of_root) {
  if (request.order == Order::tree)
    return check_contributions(request.out.count, "as many as the output", request, shape);
  if (row_of(request.collective).has_blocks() && request.in.count % static_cast<std::size_t>(shape.size) != 0)
    refuse(shape, "{}: {} elements cannot be cut into {} equal blocks, one per rank; use alltoallv",
           to_string(request.collective), request.in.count, shape.size);
  require_count(request.out.count, request.in.count, role_of(true, of_root), "as many as the input", request, shape);
}

// One side has a block for each rank, the other this rank's block.
void check_blocks(const Request& request, const Shape& shape, bool of_root) {
  const CollectiveRow& row = row_of(request.collective);
  const bool gathers = row.out == Extent::blocks;
  const std::size_t all = gathers ? request.out.count : request.in.count;
  const std::size_t own = gathers ? request.in.count : request.out.count;
  const auto require_all = [&](std::size_t wanted, std::string_view rule) {
    if (request.order == Order::tree) return check_contributions(wanted, rule, request, shape);
    require_count(all, wanted, role_of(gathers, of_root), rule, request, shape);
  };
  if (!row.has_counts())
    return require_all(times_size(own, shape), gathers ? "group size x input" : "group size x output");
  const auto counts = gathers ? request.out_counts : request.in_counts;
  require_all(sum_of(counts, "counts", request, shape), "the sum of counts");
  require_count(own, counts[static_cast<std::size_t>(shape.rank)], role_of(!gathers, of_root), "counts[own rank]",
                request, shape);
}

void check_counts(const Request& request, const Shape& shape, bool is_root) {
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_in_place()) return;  // one side, of any length
  // The root alone knows what to compare with.
  const bool on_root = row.in_on_root || row.out_on_root;
  if (on_root && !is_root) return;
  if (row.counts == BlockCounts::pairs) {
    require_count(request.in.count, sum_of(request.in_counts, "in_counts", request, shape), "the input",
                  "the sum of in_counts", request, shape);
    require_count(request.out.count, sum_of(request.out_counts, "out_counts", request, shape), "the output",
                  "the sum of out_counts", request, shape);
  } else if (row.in == row.out) {
    check_equal_sides(request, shape, on_root);
  } else {
    check_blocks(request, shape, on_root);
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
  const std::size_t size = size_of(view.dtype);
  if (size == 0 && is_opaque(view.dtype))
    refuse(shape, "{} has opaque elements without a size; write col::opaque(bytes), with 1 to {} bytes", role,
           kMaxElementBytes);
  if (size == 0)
    refuse(shape, "{} has an unknown dtype ({}); use one of col::DType", role, static_cast<int>(view.dtype));
  if (view.data == nullptr && view.count > 0) refuse(shape, "{} has {} elements but a null pointer", role, view.count);
  if (view.count > kMaxCount / std::max<std::size_t>(1, size / 16))
    refuse(shape, "{} has {} elements, more than memory can hold: a negative count?", role, view.count);
}

void check_written(ConstTensorView view, std::string_view role, const Shape& shape) {
  if (view.empty() || view.device.type != Device::Type::cpu) return;
  const core::Writing writing = core::may_write(view.data, view.bytes());
  if (writing == core::Writing::allowed) return;
  refuse(shape, "{} is in {}, and the call would write to it; pass a copy", role,
         writing == core::Writing::of_ray ? "Ray's object store, where other processes read it, too"
                                          : "memory that is mapped read-only");
}

void check_peer(int peer, std::string_view role, const Shape& shape) {
  if (peer < 0 || peer >= shape.size)
    refuse(shape, "{} {} is not in the group: its ranks are 0 to {}", role, peer, shape.size - 1);
}

Sides sides_of(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  const bool is_root = row.rooted && request.root == shape.rank;
  return {.in = row.has_input(is_root), .out = row.has_output(is_root)};
}

bool writes_output(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  const bool is_source = row.in == Extent::nothing && row.rooted && request.root == shape.rank;
  return sides_of(request, shape).out && !is_source && !(row.folds == Folds::below_rank && shape.rank == 0);
}

void check(const Request& request, const Shape& shape) {
  const bool rooted = row_of(request.collective).rooted;
  if (rooted) check_peer(request.root, "root", shape);
  const bool is_root = rooted && request.root == shape.rank;
  const auto [uses_in, uses_out] = sides_of(request, shape);
  if (uses_in) check_tensor(request.in, "the input", shape);
  if (uses_out) check_tensor(request.out, "the output", shape);
  if (uses_in && uses_out && request.in.dtype != request.out.dtype)
    refuse(shape, "{}: the input is {}, the output {}; a collective does not convert", to_string(request.collective),
           to_string(request.in.dtype), to_string(request.out.dtype));
  check_counts(request, shape, is_root);
  if (row_of(request.collective).reduces()) check_operator(request, shape);
  if (uses_in && uses_out) check_overlap(request, shape);
  if (writes_output(request, shape)) check_written(request.out, "the output", shape);
}

}  // namespace col::group

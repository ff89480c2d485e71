#include "exec/memory.hpp"

#include <cstring>
#include <functional>
#include <new>

#include <fmt/format.h>

#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"
#include "core/kernels/usual_floats.hpp"

namespace col::exec {
namespace {

// Not initialised: a plan reads only what it has written.
void grow(std::unique_ptr<std::byte[]>& memory, std::size_t& has, std::size_t needs) {
  if (needs <= has) return;
  memory.reset();
  has = 0;
  memory.reset(new (std::nothrow) std::byte[needs]);
  if (!memory)
    throw Error(
        ErrorCode::resource,
        fmt::format("no memory for {} bytes of scratch; choose an algorithm that needs less, or a smaller count",
                    needs));
  has = needs;
}

}  // namespace

bool overlap(const Extent& a, const Extent& b) noexcept {
  return a.bytes > 0 && b.bytes > 0 && std::less<>{}(a.data, b.data + b.bytes) &&
         std::less<>{}(b.data, a.data + a.bytes);
}

void Memory::prepare(const Plan& plan, const Operands& operands) {
  operands_ = operands;
  is_tree_ = plan.contributions != 0;
  divisor_ = plan.contributions != 0 ? plan.contributions : static_cast<std::size_t>(operands.ranks);
  wide_type_ = operands.widens ? core::accumulation_type(operands.dtype) : operands.dtype;
  grow(scratch_, scratch_bytes_, plan.scratch * size_of(operands.dtype));
  grow(wide_, wide_bytes_, plan.wide * size_of(wide_type_));
}

bool Memory::is_wide(Buffer buffer) const noexcept {
  return buffer == Buffer::wide ? operands_.widens : buffer == Buffer::input && operands_.wide_input;
}

Extent Memory::extent(const Slice& slice) const noexcept {
  const std::size_t element = size_of(is_wide(slice.buffer) ? wide_type_ : operands_.dtype);
  std::byte* base = nullptr;
  switch (slice.buffer) {
    case Buffer::input:
      base = static_cast<std::byte*>(const_cast<void*>(operands_.input));  // plans never write it
      break;
    case Buffer::output:
      base = static_cast<std::byte*>(operands_.output);
      break;
    case Buffer::scratch:
      base = scratch_.get();
      break;
    case Buffer::wide:
      base = wide_.get();
      break;
  }
  return {base + slice.offset * element, slice.count * element};
}

TensorView Memory::view(const Slice& slice) const noexcept {
  const DType dtype = is_wide(slice.buffer) ? wide_type_ : operands_.dtype;
  return {slice.empty() ? nullptr : extent(slice).data, slice.count, dtype};
}

void Memory::run(const Step& step) const {
  std::byte* const to = extent(step.to).data;
  const std::byte* const left = extent(step.left).data;
  const bool to_wide = is_wide(step.to.buffer);
  const bool left_wide = is_wide(step.left.buffer);
  const std::size_t count = step.to.count;
  const core::UsualFloats floats(is_tree_);
  switch (step.kind) {
    case Step::Kind::reduce:
      return core::reduce_mixed(operands_.op, operands_.dtype, left_wide, left, is_wide(step.right.buffer),
                                extent(step.right).data, to_wide, to, count);
    case Step::Kind::copy:
      if (to == left) return;
      if (to_wide != left_wide) return core::widen(operands_.dtype, left, to, count);
      std::memcpy(to, left, extent(step.to).bytes);
      return;
    case Step::Kind::convert:
      return core::finish(operands_.op, divisor_, operands_.dtype, left_wide, left, to, count);
    case Step::Kind::send:
    case Step::Kind::recv:
      break;
  }
  throw Error(ErrorCode::internal, fmt::format("a {} is no local step", to_string(step.kind)));
}

}  // namespace col::exec

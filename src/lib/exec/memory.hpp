// Where a plan's buffers are, and how its local steps run on them.
#pragma once

#include <cstddef>
#include <memory>

#include <col/plan.hpp>
#include <col/types.hpp>

namespace col::exec {

// The operands of a plan: the caller's buffers, and how to combine elements. The memory must outlive the execution.
struct Operands {
  const void* input = nullptr;
  void* output = nullptr;
  DType dtype = DType::uint8;  // of the output; of the input too, unless wide_input
  Op op = {};
  int ranks = 1;  // the divisor of avg, where the plan names none
  bool widens = false;
  bool wide_input = false;
};

// A range of bytes.
struct Extent {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};
bool overlap(const Extent& a, const Extent& b) noexcept;

// The buffers of one execution. Scratch memory is kept between executions and only grows.
class Memory {
 public:
  // Throws resource if there is no memory for the plan's scratch.
  void prepare(const Plan& plan, const Operands& operands);

  // Drops the operands, not the scratch.
  void forget() noexcept { operands_ = {}; }

  Extent extent(const Slice& slice) const noexcept;
  // The elements to send or receive: `slice` as elements of its type.
  TensorView view(const Slice& slice) const noexcept;
  // Runs a reduce, copy or convert step.
  void run(const Step& step) const;

 private:
  bool is_wide(Buffer buffer) const noexcept;

  Operands operands_;
  DType wide_type_ = DType::uint8;
  std::size_t divisor_ = 1;
  bool is_tree_ = false;  // the bits must not depend on what this thread does with floats
  std::unique_ptr<std::byte[]> scratch_, wide_;
  std::size_t scratch_bytes_ = 0, wide_bytes_ = 0;
};

}  // namespace col::exec

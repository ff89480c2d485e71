// Our types and reduce ops in NCCL's terms.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <col/types.hpp>

#include "backend/nccl/communicator.hpp"

namespace col::nccl_backend {

// An array in NCCL's terms. A type that NCCL does not have becomes what it is made of: a complex number its two parts,
// a boolean a byte, anything else bytes. So do floats of 8 bits, which NCCL has from 2.24 on: every version moves them,
// on every GPU.
struct NcclArray {
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
};
NcclArray to_nccl(DType dtype, std::size_t count) noexcept;

// Whether NCCL reduces `dtype` by `op`, or by an operator that can be made of `op`, and may do so: its sums of 8-bit
// floats saturate and are rounded at every hop, and it has them only from GPUs of capability 9.0 on. Native::fold() has
// better ones (docs/decisions/0047-float8.md).
bool nccl_reduces(const Op& op, DType dtype) noexcept;

// Nothing for operators that NCCL does not have: bitwise operators and user's functions.
std::optional<ncclRedOp_t> to_nccl(const Op& op) noexcept;

// A whole number modulo 2^64: the factor of integers, in their own width.
std::uint64_t wrapped(double whole) noexcept;

// A reduce op as NCCL's operator, for one call on one communicator: the operator of a scaled sum is made for it. It, or
// a copy of it, must outlive the start of the call, and none the communicator.
class Operator {
 public:
  // Throws unavailable for operators that NCCL does not have: bitwise operators and user's functions.
  Operator(const Communicator& communicator, const Op& op, DType dtype);
  operator ncclRedOp_t() const noexcept { return op_; }  // NOLINT(google-explicit-constructor)

  // Throws what the constructor would throw if NCCL does not have the operator.
  static void require(const Op& op, DType dtype);

 private:
  ncclRedOp_t op_ = ncclSum;
  std::shared_ptr<const void> made_;  // shared by copies: the last one ends it; null if NCCL has it anyway
};

}  // namespace col::nccl_backend

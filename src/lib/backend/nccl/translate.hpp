// Our types in NCCL's terms.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <optional>

#include <col/types.hpp>

namespace col::nccl_backend {

ncclDataType_t to_nccl(DType dtype) noexcept;

// Nothing for operators that NCCL does not have: bitwise operators and user's functions.
std::optional<ncclRedOp_t> to_nccl(const Op& op) noexcept;

// A whole number modulo 2^64: the factor of integers, in their own width.
std::uint64_t wrapped(double whole) noexcept;

}  // namespace col::nccl_backend

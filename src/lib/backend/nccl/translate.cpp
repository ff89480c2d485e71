#include "backend/nccl/translate.hpp"

#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace col::nccl_backend {

NcclArray to_nccl(DType dtype, std::size_t count) noexcept {
  // In the order of the enumerators.
  constexpr std::array<ncclDataType_t, 10> kTypes = {ncclInt8,   ncclUint8,   ncclInt32,    ncclUint32,  ncclInt64,
                                                     ncclUint64, ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64};
  static_assert(static_cast<std::size_t>(DType::float64) + 1 == kTypes.size());
  const auto number = static_cast<std::size_t>(dtype);
  if (number < kTypes.size()) return {count, kTypes[number]};
  if (row_of(dtype).kind == ElementKind::complex)
    return {2 * count, dtype == DType::complex64 ? ncclFloat32 : ncclFloat64};
  return {count * size_of(dtype), ncclUint8};
}

bool nccl_reduces(const Op& op, DType dtype) noexcept {
  const bool is_scaled = op.kind() == Op::Kind::premul_sum;
  const auto own = to_nccl(op);
  if (!is_scaled && !own) return false;
  if (dtype <= DType::float64) return true;
  if (row_of(dtype).kind == ElementKind::complex) return is_scaled || *own == ncclSum || *own == ncclAvg;
  return dtype == DType::boolean && !is_scaled && (*own == ncclMin || *own == ncclMax);
}

std::optional<ncclRedOp_t> to_nccl(const Op& op) noexcept {
  if (op.kind() != Op::Kind::builtin) return std::nullopt;
  switch (op.reduce_op()) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::product:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::avg:
      return ncclAvg;
    default:
      return std::nullopt;
  }
}

std::uint64_t wrapped(double whole) noexcept {
  const auto magnitude = static_cast<std::uint64_t>(std::fmod(std::fabs(whole), 0x1p64));
  return whole < 0 ? std::uint64_t{0} - magnitude : magnitude;
}

// ---- Operators

namespace {

// NCCL takes the factor of a scaled sum as an element: the first bytes of this.
std::uint64_t to_element(double scale, DType dtype) {
  if (row_of(dtype).is_integer()) return wrapped(scale);
  const auto narrow = static_cast<float>(scale);
  if (dtype == DType::float16) return float16(narrow).bits;
  if (dtype == DType::bfloat16) return bfloat16(narrow).bits;
  if (dtype == DType::float32 || dtype == DType::complex64) return std::bit_cast<std::uint32_t>(narrow);
  return std::bit_cast<std::uint64_t>(scale);
}
static_assert(std::endian::native == std::endian::little);

[[noreturn]] void refuse(const Op& op, DType dtype) {
  if (row_of(dtype).is_narrow() && size_of(dtype) == 1 && (to_nccl(op) || op.kind() == Op::Kind::premul_sum))
    throw Error(ErrorCode::unavailable,
                fmt::format("NCCL rounds {} at every hop and saturates, so col reduces it by kernels of its own, which "
                            "this call has not; use another call, or convert the data to float16",
                            to_string(dtype)));
  throw Error(ErrorCode::unavailable,
              fmt::format("NCCL cannot reduce {} by '{}'; copy the data to the host, and reduce "
                          "it there",
                          to_string(dtype), op.name()));
}

}  // namespace

Operator::Operator(const Communicator& communicator, const Op& op, DType dtype) {
  require(op, dtype);
  if (op.kind() != Op::Kind::premul_sum) {
    op_ = *to_nccl(op);
    return;
  }
  const NcclLibrary& nccl = communicator.nccl();
  const ncclComm_t comm = communicator.get();
  std::uint64_t scale = to_element(op.scale(), dtype);
  const ncclResult_t result =
      nccl.RedOpCreatePreMulSum(&op_, &scale, to_nccl(dtype, 1).type, ncclScalarHostImmediate, comm);
  if (result != ncclSuccess) throw communicator.error_of(result, "cannot make the operator of a scaled sum");
  made_ = {nullptr, [&nccl, comm, made = op_](const void*) { nccl.RedOpDestroy(made, comm); }};
}

void Operator::require(const Op& op, DType dtype) {
  if (!nccl_reduces(op, dtype)) refuse(op, dtype);
}

}  // namespace col::nccl_backend

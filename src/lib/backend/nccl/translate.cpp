#include "backend/nccl/translate.hpp"

#include <cmath>

namespace col::nccl_backend {

ncclDataType_t to_nccl(DType dtype) noexcept {
  switch (dtype) {
    case DType::int8:
      return ncclInt8;
    case DType::uint8:
      return ncclUint8;
    case DType::int32:
      return ncclInt32;
    case DType::uint32:
      return ncclUint32;
    case DType::int64:
      return ncclInt64;
    case DType::uint64:
      return ncclUint64;
    case DType::float16:
      return ncclFloat16;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float32:
      return ncclFloat32;
    case DType::float64:
      break;
  }
  return ncclFloat64;
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

}  // namespace col::nccl_backend

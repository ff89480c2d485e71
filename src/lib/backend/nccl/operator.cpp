#include "backend/nccl/operator.hpp"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

// NCCL takes the factor of a scaled sum as an element.
union Scale {
  std::int8_t int8;
  std::int32_t int32;
  std::int64_t int64;
  std::uint16_t bits;
  float float32;
  double float64;
};

Scale to_element(double scale, DType dtype) {
  Scale element{};
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
      element.int8 = static_cast<std::int8_t>(wrapped(scale));
      break;
    case DType::int32:
    case DType::uint32:
      element.int32 = static_cast<std::int32_t>(wrapped(scale));
      break;
    case DType::int64:
    case DType::uint64:
      element.int64 = static_cast<std::int64_t>(wrapped(scale));
      break;
    case DType::float16:
      element.bits = float16(static_cast<float>(scale)).bits;
      break;
    case DType::bfloat16:
      element.bits = bfloat16(static_cast<float>(scale)).bits;
      break;
    case DType::complex64:
    case DType::float32:
      element.float32 = static_cast<float>(scale);
      break;
    default:  // float64 and complex128
      element.float64 = scale;
      break;
  }
  return element;
}

[[noreturn]] void refuse(const Op& op, DType dtype) {
  throw Error(ErrorCode::unavailable,
              fmt::format("NCCL cannot reduce {} by '{}'; copy the data to the host, and reduce "
                          "it there",
                          to_string(dtype), op.name()));
}

}  // namespace

Operator::Operator(const Communicator& communicator, const Op& op, DType dtype) : communicator_(communicator) {
  if (op.kind() == Op::Kind::premul_sum) {
    Scale scale = to_element(op.scale(), dtype);
    const ncclResult_t result = communicator.nccl().RedOpCreatePreMulSum(&op_, &scale, to_nccl(dtype, 1).type,
                                                                         ncclScalarHostImmediate, communicator.get());
    if (result != ncclSuccess) throw communicator.error_of(result, "cannot make the operator of a scaled sum");
    made_ = true;
    return;
  }
  const auto own = to_nccl(op);
  if (!own || !nccl_reduces(op, dtype)) refuse(op, dtype);
  op_ = *own;
}

Operator::~Operator() {
  if (made_) communicator_.nccl().RedOpDestroy(op_, communicator_.get());
}

void Operator::require(const Op& op, DType dtype) {
  if (!nccl_reduces(op, dtype)) refuse(op, dtype);
}

}  // namespace col::nccl_backend

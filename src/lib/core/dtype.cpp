#include <array>
#include <cstddef>

#include <fmt/format.h>

#include <col/types.hpp>

#include "core/half.hpp"
#include "core/names.hpp"

namespace col {

namespace {

constexpr std::array<std::string_view, kDTypeCount> kDTypeNames = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"};
constexpr std::array<std::size_t, kDTypeCount> kDTypeSizes = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
constexpr std::array<std::string_view, 4> kBackendNames = {"automatic", "shm", "gloo", "nccl"};

// DLDataType of dlpack.h: code (0 signed, 1 unsigned, 2 IEEE float, 4 bfloat) and bits.
struct DLPackType {
  int code;
  int bits;
};
constexpr std::array<DLPackType, kDTypeCount> kDLPackTypes = {
    {{0, 8}, {1, 8}, {0, 32}, {1, 32}, {0, 64}, {1, 64}, {2, 16}, {4, 16}, {2, 32}, {2, 64}}};

// DLDeviceType of dlpack.h.
constexpr int kDLCPU = 1;
constexpr int kDLCUDA = 2;
constexpr int kDLCUDAHost = 3;

}  // namespace

std::size_t size_of(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypeSizes.size() ? kDTypeSizes[index] : 0;
}

std::string_view to_string(DType dtype) noexcept {
  return core::name_at(kDTypeNames, static_cast<std::size_t>(dtype));
}

DType dtype_from_string(std::string_view name) {
  return core::value_of<DType>(kDTypeNames, name, "dtype");
}

std::string_view to_string(Backend backend) noexcept {
  return core::name_at(kBackendNames, static_cast<std::size_t>(backend));
}

Backend backend_from_string(std::string_view name) {
  if (name == "auto") return Backend::automatic;
  return core::value_of<Backend>(kBackendNames, name, "backend");
}

float16::float16(float value) noexcept : bits(core::float_to_float16(value)) {}
float16::operator float() const noexcept {
  return core::float16_to_float(bits);
}
bfloat16::bfloat16(float value) noexcept : bits(core::float_to_bfloat16(value)) {}
bfloat16::operator float() const noexcept {
  return core::bfloat16_to_float(bits);
}

namespace detail {

void throw_bad_dlpack(const char* what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("from_dlpack: the tensor has {}", what));
}

DType dtype_from_dlpack(int code, int bits, int lanes) {
  if (lanes != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("from_dlpack: the tensor has {} lanes per element; only 1 is supported", lanes));
  }
  for (std::size_t i = 0; i < kDLPackTypes.size(); ++i)
    if (kDLPackTypes[i].code == code && kDLPackTypes[i].bits == bits) return static_cast<DType>(i);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("from_dlpack: no dtype for type code {} with {} bits; convert the tensor to one of {}", code,
                          bits, fmt::join(kDTypeNames, ", ")));
}

Device device_from_dlpack(int device_type, int device_id) {
  switch (device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return {Device::Type::cpu, 0};  // pinned host memory is host memory
    case kDLCUDA:
      return {Device::Type::cuda, device_id};
    default:
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("from_dlpack: device type {} is neither CPU (1), CUDA (2) nor pinned host memory (3); copy "
                      "the tensor to one of them",
                      device_type));
  }
}

}  // namespace detail

}  // namespace col

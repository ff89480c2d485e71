#include "support/fake_gpu/nccl/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

using Kind = Reduction::Kind;

// How a type is calculated with: what it becomes, and how it comes back.
template <typename T>
struct Arithmetic {
  using Wide = T;
  static Wide widen(T value) { return value; }
  static T narrow(Wide value) { return value; }
};
// Signed integers wrap round, as they do on a device.
template <typename T, typename Unsigned>
struct WrappingArithmetic {
  using Wide = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
  static T add(T a, T b) { return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)); }
  static T multiply(T a, T b) { return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b)); }
};
template <>
struct Arithmetic<int8_t> : WrappingArithmetic<int8_t, uint32_t> {};
template <>
struct Arithmetic<uint8_t> : WrappingArithmetic<uint8_t, uint32_t> {};
template <>
struct Arithmetic<int32_t> : WrappingArithmetic<int32_t, uint32_t> {};
template <>
struct Arithmetic<uint32_t> : WrappingArithmetic<uint32_t, uint32_t> {};
template <>
struct Arithmetic<int64_t> : WrappingArithmetic<int64_t, uint64_t> {};
template <>
struct Arithmetic<uint64_t> : WrappingArithmetic<uint64_t, uint64_t> {};
template <>
struct Arithmetic<__half> {
  using Wide = float;
  static float widen(__half value) { return __half2float(value); }
  static __half narrow(float value) { return __float2half_rn(value); }
};
template <>
struct Arithmetic<__nv_bfloat16> {
  using Wide = float;
  static float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __nv_bfloat16 narrow(float value) { return __float2bfloat16_rn(value); }
};
template <>
struct Arithmetic<__nv_fp8_e4m3> {
  using Wide = float;
  static float widen(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
  static __nv_fp8_e4m3 narrow(float value) { return __nv_fp8_e4m3(value); }
};
template <>
struct Arithmetic<__nv_fp8_e5m2> {
  using Wide = float;
  static float widen(__nv_fp8_e5m2 value) { return static_cast<float>(value); }
  static __nv_fp8_e5m2 narrow(float value) { return __nv_fp8_e5m2(value); }
};

template <typename T>
T add(T a, T b) {
  using A = Arithmetic<T>;
  if constexpr (std::is_integral_v<T>) {
    return A::add(a, b);
  } else {
    return A::narrow(A::widen(a) + A::widen(b));
  }
}

template <typename T>
T multiply(T a, T b) {
  using A = Arithmetic<T>;
  if constexpr (std::is_integral_v<T>) {
    return A::multiply(a, b);
  } else {
    return A::narrow(A::widen(a) * A::widen(b));
  }
}

template <typename T>
T extreme(T a, T b, bool largest) {
  using A = Arithmetic<T>;
  if constexpr (std::is_integral_v<T>) {
    return largest ? std::max(a, b) : std::min(a, b);
  } else {
    return A::narrow(largest ? std::fmax(A::widen(a), A::widen(b)) : std::fmin(A::widen(a), A::widen(b)));
  }
}

template <typename T>
T scale_of(const Reduction& reduction) {
  T scale;
  std::memcpy(&scale, reduction.scale_at != nullptr ? reduction.scale_at : &reduction.scale, sizeof scale);
  return scale;
}

template <typename T>
void reduce_as(const Reduction& reduction, const std::vector<const char*>& inputs, char* output, size_t count) {
  using Wide = typename Arithmetic<T>::Wide;
  const Kind kind = reduction.kind;
  const bool scales = kind == Kind::scaled_sum || (kind == Kind::average && !std::is_integral_v<T>);
  T scale{};
  if (kind == Kind::scaled_sum) scale = scale_of<T>(reduction);
  if (kind == Kind::average) scale = Arithmetic<T>::narrow(Wide(1) / Wide(inputs.size()));
  auto input = [&](size_t rank, size_t i) {
    T value;
    std::memcpy(&value, inputs[rank] + i * sizeof(T), sizeof value);
    return scales ? multiply(scale, value) : value;
  };
  for (size_t i = 0; i < count; ++i) {
    T result = input(0, i);
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      const T next = input(rank, i);
      if (kind == Kind::product) {
        result = multiply(result, next);
      } else if (kind == Kind::max || kind == Kind::min) {
        result = extreme(result, next, kind == Kind::max);
      } else {
        result = add(result, next);
      }
    }
    if constexpr (std::is_integral_v<T>) {
      if (kind == Kind::average) result = static_cast<T>(result / static_cast<T>(inputs.size()));
    }
    std::memcpy(output + i * sizeof(T), &result, sizeof result);
  }
}

}  // namespace

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      fail(ncclInvalidArgument, "unknown data type " + std::to_string(static_cast<int>(type)));
  }
}

void reduce(ncclDataType_t type, const Reduction& reduction, const std::vector<const char*>& inputs, char* output,
            size_t count) {
  switch (type) {
    case ncclInt8:
      return reduce_as<int8_t>(reduction, inputs, output, count);
    case ncclUint8:
      return reduce_as<uint8_t>(reduction, inputs, output, count);
    case ncclInt32:
      return reduce_as<int32_t>(reduction, inputs, output, count);
    case ncclUint32:
      return reduce_as<uint32_t>(reduction, inputs, output, count);
    case ncclInt64:
      return reduce_as<int64_t>(reduction, inputs, output, count);
    case ncclUint64:
      return reduce_as<uint64_t>(reduction, inputs, output, count);
    case ncclFloat16:
      return reduce_as<__half>(reduction, inputs, output, count);
    case ncclFloat32:
      return reduce_as<float>(reduction, inputs, output, count);
    case ncclFloat64:
      return reduce_as<double>(reduction, inputs, output, count);
    case ncclBfloat16:
      return reduce_as<__nv_bfloat16>(reduction, inputs, output, count);
    case ncclFloat8e4m3:
      return reduce_as<__nv_fp8_e4m3>(reduction, inputs, output, count);
    case ncclFloat8e5m2:
      return reduce_as<__nv_fp8_e5m2>(reduction, inputs, output, count);
    default:
      fake_gpu::die("a reduction of an unknown type");
  }
}

}  // namespace fake_nccl

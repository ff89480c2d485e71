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
void scale_as(const Reduction& reduction, size_t ranks, const char* input, char* output, size_t count) {
  using A = Arithmetic<T>;
  using Wide = typename A::Wide;
  const T scale =
      reduction.kind == Kind::average ? A::narrow(Wide(1) / static_cast<Wide>(ranks)) : scale_of<T>(reduction);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, input + i * sizeof(T), sizeof value);
    value = multiply(scale, value);
    std::memcpy(output + i * sizeof(T), &value, sizeof value);
  }
}

template <typename T>
void reduce_as(const Reduction& reduction, const std::vector<const char*>& inputs, char* output, size_t count) {
  const Kind kind = reduction.kind;
  auto input = [&](size_t rank, size_t i) {
    T value;
    std::memcpy(&value, inputs[rank] + i * sizeof(T), sizeof value);
    return value;
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

// Calls body(T{}) for the type that it stands for.
template <typename Body>
void with_type(ncclDataType_t type, Body body) {
  switch (type) {
    case ncclInt8:
      return body(int8_t{});
    case ncclUint8:
      return body(uint8_t{});
    case ncclInt32:
      return body(int32_t{});
    case ncclUint32:
      return body(uint32_t{});
    case ncclInt64:
      return body(int64_t{});
    case ncclUint64:
      return body(uint64_t{});
    case ncclFloat16:
      return body(__half{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(__nv_bfloat16{});
    case ncclFloat8e4m3:
      return body(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return body(__nv_fp8_e5m2{});
    default:
      fake_gpu::die("a reduction of an unknown type");
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

bool scales(ncclDataType_t type, const Reduction& reduction) {
  bool averages_floats = false;
  with_type(type, [&](auto value) {
    averages_floats = reduction.kind == Kind::average && !std::is_integral_v<decltype(value)>;
  });
  return averages_floats || reduction.kind == Kind::scaled_sum;
}

std::vector<char> scaled(ncclDataType_t type, const Reduction& reduction, size_t ranks, const char* input,
                         size_t count) {
  std::vector<char> output(count * bytes_of(type));
  with_type(type, [&](auto value) { scale_as<decltype(value)>(reduction, ranks, input, output.data(), count); });
  return output;
}

void reduce(ncclDataType_t type, const Reduction& reduction, const std::vector<const char*>& inputs, char* output,
            size_t count) {
  with_type(type, [&](auto value) { reduce_as<decltype(value)>(reduction, inputs, output, count); });
}

}  // namespace fake_nccl

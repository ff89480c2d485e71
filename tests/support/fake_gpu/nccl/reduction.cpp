#include "support/fake_gpu/nccl/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

using Kind = Reduction::Kind;

// How a type is calculated with. The result comes back to the type, with rounding to nearest even.
template <typename T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <typename T>
Wide<T> widen(T value) {
  return static_cast<Wide<T>>(value);
}

// Applies the operation to both. Integers wrap round, as they do on a device.
template <typename T, typename Operation>
T combine(T a, T b, Operation operation) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    return static_cast<T>(operation(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return static_cast<T>(operation(widen(a), widen(b)));
  }
}

template <typename T>
T add(T a, T b) {
  return combine(a, b, std::plus<>());
}

template <typename T>
T multiply(T a, T b) {
  return combine(a, b, std::multiplies<>());
}

template <typename T>
T extreme(T a, T b, bool largest) {
  if constexpr (std::is_integral_v<T>) {
    return largest ? std::max(a, b) : std::min(a, b);
  } else {
    return static_cast<T>(largest ? std::fmax(widen(a), widen(b)) : std::fmin(widen(a), widen(b)));
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
  const T scale = reduction.kind == Kind::average ? static_cast<T>(Wide<T>(1) / static_cast<Wide<T>>(ranks))
                                                  : scale_of<T>(reduction);
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
      fail(ncclInvalidArgument, "unknown data type " + std::to_string(static_cast<int>(type)));
  }
}

}  // namespace

size_t bytes_of(ncclDataType_t type) {
  size_t bytes = 0;
  with_type(type, [&](auto value) { bytes = sizeof value; });
  return bytes;
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

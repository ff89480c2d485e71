// Element types, reduction operators and tensor views.
#pragma once

#if __cplusplus < 202002L
#error "col needs C++20: compile with -std=c++20"
#endif

#include <chrono>
#include <compare>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include <col/collective.hpp>  // IWYU pragma: export
#include <col/dtype.hpp>       // IWYU pragma: export
#include <col/error.hpp>
#include <col/export.hpp>

namespace col {

// A time span. std::chrono durations with integer counts, such as 5s or 20ms, convert to it implicitly. Zero in an
// option means "the default".
using Duration = std::chrono::nanoseconds;

// ---- Element types --------------------------------------------------------------------------------------------------

// IEEE 754 binary16. Conversion from float rounds to nearest, ties to even; overflow gives infinity; a NaN stays a NaN.
struct COL_EXPORT float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) noexcept;
  explicit operator float() const noexcept;
  static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 value;
    value.bits = bits;
    return value;
  }
};

// The upper half of an IEEE 754 binary32. Conversion from float rounds to nearest, ties to even; a NaN stays a NaN.
struct COL_EXPORT bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept;
  explicit operator float() const noexcept;
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 value;
    value.bits = bits;
    return value;
  }
};

// The two 8-bit floats of the Open Compute Project (OCP). Conversion from float rounds to nearest, ties to even; a NaN
// stays a NaN. A value that is too large becomes infinity; in float8_e4m3fn, which has no infinity, it becomes NaN. The
// largest finite float8_e4m3fn is 448.
struct COL_EXPORT float8_e4m3fn {
  std::uint8_t bits = 0;
  float8_e4m3fn() = default;
  explicit float8_e4m3fn(float value) noexcept;
  explicit operator float() const noexcept;
  static constexpr float8_e4m3fn from_bits(std::uint8_t bits) noexcept {
    float8_e4m3fn value;
    value.bits = bits;
    return value;
  }
};

// The upper half of a float16. The largest finite value is 57344.
struct COL_EXPORT float8_e5m2 {
  std::uint8_t bits = 0;
  float8_e5m2() = default;
  explicit float8_e5m2(float value) noexcept;
  explicit operator float() const noexcept;
  static constexpr float8_e5m2 from_bits(std::uint8_t bits) noexcept {
    float8_e5m2 value;
    value.bits = bits;
    return value;
  }
};

namespace detail {

template <class T>
constexpr bool is_integer_element =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
    !std::is_same_v<T, char8_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;

}  // namespace detail

// The C++ types that have a DType: integers of 1, 2, 4 or 8 bytes (not char, wchar_t or charN_t), bool, std::byte
// (uint8), col::float8_e4m3fn, col::float8_e5m2, col::float16, col::bfloat16, float, double, and std::complex of the
// last two. A view of anything else does not compile. Pass a struct of your own as TensorView(pointer, count,
// col::opaque(sizeof(Struct))).
//
// Formatted by hand: clang-format 14 does not know concepts.
// clang-format off
template <class T>
concept TensorElement =
    detail::is_integer_element<std::remove_cv_t<T>> || std::same_as<std::remove_cv_t<T>, std::byte> ||
    std::same_as<std::remove_cv_t<T>, float8_e4m3fn> || std::same_as<std::remove_cv_t<T>, float8_e5m2> ||
    std::same_as<std::remove_cv_t<T>, float16> || std::same_as<std::remove_cv_t<T>, bfloat16> ||
    std::same_as<std::remove_cv_t<T>, float> || std::same_as<std::remove_cv_t<T>, double> ||
    std::same_as<std::remove_cv_t<T>, bool> || std::same_as<std::remove_cv_t<T>, std::complex<float>> ||
    std::same_as<std::remove_cv_t<T>, std::complex<double>>;
// clang-format on

// The DType of a C++ element type.
template <TensorElement T>
constexpr DType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::same_as<U, std::byte>)
    return DType::uint8;
  else if constexpr (std::same_as<U, float8_e4m3fn>)
    return DType::float8_e4m3fn;
  else if constexpr (std::same_as<U, float8_e5m2>)
    return DType::float8_e5m2;
  else if constexpr (std::same_as<U, float16>)
    return DType::float16;
  else if constexpr (std::same_as<U, bfloat16>)
    return DType::bfloat16;
  else if constexpr (std::same_as<U, float>)
    return DType::float32;
  else if constexpr (std::same_as<U, double>)
    return DType::float64;
  else if constexpr (std::same_as<U, bool>)
    return DType::boolean;
  else if constexpr (std::same_as<U, std::complex<float>>)
    return DType::complex64;
  else if constexpr (std::same_as<U, std::complex<double>>)
    return DType::complex128;
  else if constexpr (sizeof(U) == 1)
    return std::is_signed_v<U> ? DType::int8 : DType::uint8;
  else if constexpr (sizeof(U) == 2)
    return std::is_signed_v<U> ? DType::int16 : DType::uint16;
  else if constexpr (sizeof(U) == 4)
    return std::is_signed_v<U> ? DType::int32 : DType::uint32;
  else
    return std::is_signed_v<U> ? DType::int64 : DType::uint64;
}

// ---- Reduction operators --------------------------------------------------------------------------------------------

enum class ReduceOp : std::uint8_t { sum, product, min, max, avg, band, bor, bxor };  // band, bor, bxor: bitwise
inline constexpr int kReduceOpCount = 8;

COL_EXPORT std::string_view to_string(ReduceOp op) noexcept;
// The ReduceOp of that name. Throws invalid_argument that lists the valid names.
COL_EXPORT ReduceOp reduce_op_from_string(std::string_view name);

// How a reduction combines two elements. It converts implicitly from ReduceOp, so `{.op = col::ReduceOp::max}` works.
//
// Integers wrap, and integer avg rounds toward zero. min and max propagate NaN, and treat -0 as less than +0. These are
// not defined, and the collective throws invalid_argument:
// - the bitwise operators on floating and complex types; min and max on complex types;
// - sum, product, avg and premul_sum on boolean. There min and band are the logical and, max and bor the logical or,
//   bxor the exclusive or; an element that combines contributions is 0 or 1;
// - every operator except a user's on opaque elements.
class COL_EXPORT Op {
 public:
  enum class Kind : std::uint8_t { builtin, premul_sum, user };

  // result[i] = left[i] op right[i] for i in [0, count). `result` may be the same memory as `left` or `right`; it
  // overlaps them in no other way. The function must not throw, and must not use the group that runs it. Any thread of
  // the process that is inside a call of col may run it; so may the library's own thread (COL_PROGRESS=thread,
  // Work::then()).
  using UserFunction =
      std::function<void(const void* left, const void* right, void* result, std::size_t count, DType dtype)>;

  Op(ReduceOp op = ReduceOp::sum) noexcept;  // NOLINT(google-explicit-constructor): meant to be implicit

  // Each rank multiplies its input by its own `scale` before the sum. For integer types, `scale` must be a whole
  // number; otherwise the call throws invalid_argument.
  static Op premul_sum(double scale);

  // A user's associative function. If it is not commutative, contributions are combined in rank order. Throws
  // invalid_argument if the function is empty.
  static Op user(UserFunction function, bool commutative, std::string name = "user");

  Kind kind() const noexcept { return kind_; }
  ReduceOp reduce_op() const noexcept { return op_; }  // sum for premul_sum; no meaning for user
  double scale() const noexcept { return scale_; }
  bool commutative() const noexcept;
  const UserFunction& user_function() const;  // Requires: kind() == Kind::user
  // "sum", "premul_sum", or the user's name. Ranks compare it to check that they agree.
  std::string_view name() const noexcept;

 private:
  struct User;
  Kind kind_ = Kind::builtin;
  ReduceOp op_ = ReduceOp::sum;
  double scale_ = 1.0;
  std::shared_ptr<const User> user_;  // shared: an Op is a value, and its copies in requests outlive the caller's Op
};

// The order in which a reduction combines contributions: the vectors that the ranks give, usually one for each rank.
enum class Order : std::uint8_t {
  any,   // an order that depends on the call, the number of ranks and the algorithm alone
  rank,  // ((x0 op x1) op x2) op …, of ranks 0, 1, 2, …
  // A binary tree over all V contributions: level by level, neighbours are combined in pairs; a last one without a
  // neighbour moves up unchanged. Contributions are numbered rank by rank, and a rank gives any number of them. The
  // bits depend on V and the contributions alone: not on the number of ranks, on how many each of them gives, on hosts,
  // or on the algorithm.
  tree,
  exact,  // the correctly rounded sum, whatever the order; not built yet: invalid_argument
};

COL_EXPORT std::string_view to_string(Order order) noexcept;

// ---- Devices and backends -------------------------------------------------------------------------------------------

// The backends. "ucx" and "hosts_ucx" have no number here: name them in GroupSpec::backend_name or COL_BACKEND.
enum class Backend : std::uint8_t { automatic, shm, gloo, nccl, hosts };

COL_EXPORT std::string_view to_string(Backend backend) noexcept;
// The Backend of that name ("auto" is accepted for automatic). Throws invalid_argument that lists the valid names.
COL_EXPORT Backend backend_from_string(std::string_view name);

struct Device {
  enum class Type : std::uint8_t { cpu, cuda };
  Type type = Type::cpu;
  int index = 0;  // of a GPU: the number that this process gives it
  bool operator==(const Device&) const = default;
};

// A CUDA stream (cudaStream_t) for calls on device memory. Null: the call runs after what the legacy default stream of
// the device holds, as Options::stream says.
struct Stream {
  void* handle = nullptr;
};

// ---- Tensor views ---------------------------------------------------------------------------------------------------

namespace detail {

template <class R>
using element_of = std::remove_reference_t<std::ranges::range_reference_t<R>>;

// A contiguous range of supported elements. The memory of a writable one outlives the expression: it is an lvalue, or a
// borrowed range such as std::span.
template <class R>
concept TensorRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && TensorElement<element_of<R>>;

template <class R>
concept WritableTensorRange = TensorRange<R> && std::ranges::borrowed_range<R> && !std::is_const_v<element_of<R>>;

// clang-format off
// A number is a tensor of one element.
template <class T>
concept TensorNumber = TensorElement<T> && !std::ranges::range<T>;

// Types that cannot be a tensor, sorted by what to write instead. No type is in two of these concepts.
template <class R>
concept BitRange = std::ranges::range<R> && !std::ranges::contiguous_range<R> &&
    std::same_as<std::ranges::range_value_t<R>, bool>;
template <class R>
concept ScatteredRange = std::ranges::range<R> && !std::ranges::contiguous_range<R> && !BitRange<R>;
template <class R>
concept NestedRange = std::ranges::contiguous_range<R> && std::ranges::range<element_of<R>>;
template <class R>
concept StructRange = std::ranges::contiguous_range<R> && !NestedRange<R> && !TensorElement<element_of<R>> &&
    std::is_class_v<element_of<R>>;
template <class R>
concept ForeignRange = std::ranges::contiguous_range<R> && !NestedRange<R> && !TensorElement<element_of<R>> &&
    !std::is_class_v<element_of<R>>;
template <class T>
concept ForeignNumber = std::is_arithmetic_v<T> && !TensorElement<T>;
template <class T>
concept Pointer = std::is_pointer_v<std::remove_cvref_t<T>>;
template <class T>
concept ReductionOperator = std::same_as<std::remove_cvref_t<T>, ReduceOp> || std::same_as<std::remove_cvref_t<T>, Op>;

template <class T>
concept Integer = std::is_integral_v<std::remove_cvref_t<T>>;

// The DType of a range or number that can be a tensor.
template <class T>
constexpr DType dtype_in() noexcept {
  if constexpr (TensorRange<const T>)
    return dtype_of<element_of<const T>>();
  else
    return dtype_of<T>();
}
template <class In, class Out>
concept DifferentElements =
    (TensorRange<const In> || TensorNumber<In>) && (TensorRange<const Out> || TensorNumber<Out>) &&
    dtype_in<In>() != dtype_in<Out>();

// clang-format on

[[noreturn]] COL_EXPORT void throw_bad_dlpack(const char* what);
COL_EXPORT DType dtype_from_dlpack(int code, int bits, int lanes);
COL_EXPORT Device device_from_dlpack(int device_type, int device_id);

}  // namespace detail

// A contiguous array of `count` elements that somebody else owns. The memory must stay valid until the call that uses
// it has ended (of an i-form: its Work). The memory of an input must also stay unchanged until then.
struct TensorView {
  void* data = nullptr;
  std::size_t count = 0;  // elements
  DType dtype = DType::uint8;
  Device device{};

  constexpr TensorView() = default;
  constexpr TensorView(void* data_, std::size_t count_, DType dtype_, Device device_ = {}) noexcept
      : data(data_), count(count_), dtype(dtype_), device(device_) {}

  // Implicit from std::vector, std::array, C arrays, std::span, … of a TensorElement.
  template <class R>
  requires detail::WritableTensorRange<R>
  constexpr TensorView(R&& range) noexcept  // NOLINT(google-explicit-constructor): meant to be implicit
      : data(std::ranges::data(range)), count(std::ranges::size(range)), dtype(dtype_of<detail::element_of<R>>()) {}

  // clang-format off
  // Implicit from a variable that holds a number: `double residual; world.allreduce(residual);`
  template <detail::TensorNumber T>
  requires(!std::is_const_v<T>)
  constexpr TensorView(T& number) noexcept  // NOLINT(google-explicit-constructor): meant to be implicit
      : data(&number), count(1), dtype(dtype_of<T>()) {}

  // Mistakes, and what to write instead.
  template <detail::BitRange R> TensorView(R&&) = delete;  // vector<bool> packs bits: use std::vector<std::uint8_t>
  template <detail::ScatteredRange R> TensorView(R&&) = delete;  // not contiguous: copy it into a std::vector
  template <detail::NestedRange R> TensorView(R&&) = delete;  // rows of their own: copy them into one std::vector
  template <detail::StructRange R> TensorView(R&&) = delete;  // a struct is no element: send its members, or use allgather_object
  template <detail::ForeignRange R> TensorView(R&&) = delete;  // no dtype for these elements: use std::int32_t, float … (text: broadcast_object)
  template <detail::ForeignNumber R> TensorView(R&) = delete;  // no dtype for this number: use std::int32_t, float …
  template <detail::Pointer R> TensorView(R&&) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <detail::TensorRange R> requires std::is_const_v<detail::element_of<R>> TensorView(R&&) = delete;  // it is const: what a call writes cannot be
  template <detail::TensorRange R> requires(!std::is_const_v<detail::element_of<R>> && !std::ranges::borrowed_range<R>) TensorView(R&&) = delete;  // a temporary: its result would be lost; name a variable
  template <detail::TensorNumber T> requires std::is_const_v<T> TensorView(T&) = delete;  // it is const: what a call writes cannot be
  template <detail::TensorNumber T> TensorView(const T&&) = delete;  // a temporary: its result would be lost; name a variable
  template <detail::ReductionOperator T> TensorView(T&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
  // clang-format on

  // From a DLTensor (github.com/dmlc/dlpack), or any struct with the same members; so no header of dlpack is needed.
  // Throws invalid_argument for a dtype without a DType, a device that is neither CPU nor CUDA, or a tensor that is not
  // contiguous in C order.
  template <class DLTensor>
  static TensorView from_dlpack(const DLTensor& tensor);

  constexpr bool empty() const noexcept { return count == 0; }
  std::size_t bytes() const noexcept { return count * size_of(dtype); }
  // `n` elements from element `offset`. Requires: offset + n <= count.
  TensorView slice(std::size_t offset, std::size_t n) const noexcept {
    return {static_cast<std::byte*>(data) + offset * size_of(dtype), n, dtype, device};
  }
};

// The read-only form of TensorView, for inputs, which a collective never writes.
struct ConstTensorView {
  const void* data = nullptr;
  std::size_t count = 0;  // elements
  DType dtype = DType::uint8;
  Device device{};

  constexpr ConstTensorView() = default;
  constexpr ConstTensorView(const void* data_, std::size_t count_, DType dtype_, Device device_ = {}) noexcept
      : data(data_), count(count_), dtype(dtype_), device(device_) {}
  constexpr ConstTensorView(const TensorView& view) noexcept  // NOLINT(google-explicit-constructor)
      : data(view.data), count(view.count), dtype(view.dtype), device(view.device) {}

  template <class R>
  requires detail::TensorRange<const R>
  constexpr ConstTensorView(const R& range) noexcept  // NOLINT(google-explicit-constructor): meant to be implicit
      : data(std::ranges::data(range)),
        count(std::ranges::size(range)),
        dtype(dtype_of<detail::element_of<const R>>()) {}

  template <detail::TensorNumber T>
  constexpr ConstTensorView(const T& number) noexcept  // NOLINT(google-explicit-constructor): meant to be implicit
      : data(&number), count(1), dtype(dtype_of<T>()) {}

  // clang-format off
  // Mistakes, and what to write instead.
  template <detail::BitRange R> ConstTensorView(const R&) = delete;  // vector<bool> packs bits: use std::vector<std::uint8_t>
  template <detail::ScatteredRange R> ConstTensorView(const R&) = delete;  // not contiguous: copy it into a std::vector
  template <detail::NestedRange R> ConstTensorView(const R&) = delete;  // rows of their own: copy them into one std::vector
  template <detail::StructRange R> ConstTensorView(const R&) = delete;  // a struct is no element: send its members, or use allgather_object
  template <detail::ForeignRange R> ConstTensorView(const R&) = delete;  // no dtype for these elements: use std::int32_t, float … (text: broadcast_object)
  template <detail::ForeignNumber R> ConstTensorView(const R&) = delete;  // no dtype for this number: use std::int32_t, float …
  template <detail::Pointer R> ConstTensorView(const R&) = delete;  // a pointer has no count: write std::span(pointer, count)
  // clang-format on

  constexpr bool empty() const noexcept { return count == 0; }
  std::size_t bytes() const noexcept { return count * size_of(dtype); }
  ConstTensorView slice(std::size_t offset, std::size_t n) const noexcept {
    return {static_cast<const std::byte*>(data) + offset * size_of(dtype), n, dtype, device};
  }
};

template <class DLTensor>
TensorView TensorView::from_dlpack(const DLTensor& tensor) {
  const DType dtype = detail::dtype_from_dlpack(
      static_cast<int>(tensor.dtype.code), static_cast<int>(tensor.dtype.bits), static_cast<int>(tensor.dtype.lanes));
  const Device device = detail::device_from_dlpack(static_cast<int>(tensor.device.device_type),
                                                   static_cast<int>(tensor.device.device_id));
  std::size_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] < 0) detail::throw_bad_dlpack("a negative extent");
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(tensor.shape[i]), &count))
      detail::throw_bad_dlpack("more elements than memory can hold");
  }
  if (count == 0) return {static_cast<void*>(nullptr), 0, dtype, device};  // its strides mean nothing
  std::size_t stride = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    const auto extent = tensor.shape[i];
    if (tensor.strides != nullptr && extent > 1 && tensor.strides[i] != static_cast<std::int64_t>(stride))
      detail::throw_bad_dlpack("strides that are not contiguous in C order; make it contiguous first");
    stride *= static_cast<std::size_t>(extent);
  }
  return {static_cast<std::byte*>(tensor.data) + tensor.byte_offset, count, dtype, device};
}

}  // namespace col

// The value types of <col/types.hpp>, <col/collective.hpp> and <col/dtype.hpp>.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/types.hpp>

#include "core/joined.hpp"
#include "core/names.hpp"
#include "core/narrow.hpp"

namespace col {
namespace {

constexpr auto kCollectiveNames = [] {
  std::array<std::string_view, kCollectiveCount> names;
  std::transform(kCollectives.begin(), kCollectives.end(), names.begin(), [](const auto& row) { return row.name; });
  return names;
}();

constexpr std::string_view kOpaqueName = "bytes[";  // "bytes[12]"

// A name for each size that is used; they stay for ever.
std::string_view opaque_name(std::size_t size) {
  static std::mutex mutex;
  static auto& names = *new std::map<std::size_t, std::string>;
  const std::lock_guard lock(mutex);
  return names.try_emplace(size, fmt::format("{}{}]", kOpaqueName, size)).first->second;
}

std::optional<DType> opaque_from_name(std::string_view name) {
  if (!name.starts_with(kOpaqueName) || !name.ends_with(']')) return std::nullopt;
  const char* const end = name.data() + name.size() - 1;
  std::size_t size = 0;
  const auto [stopped, error] = std::from_chars(name.data() + kOpaqueName.size(), end, size);
  if (error != std::errc() || stopped != end || size == 0 || size > kMaxElementBytes) return std::nullopt;
  return opaque(size);
}

std::vector<std::string_view> names_of_dtypes() {
  std::vector<std::string_view> names;
  for (const DTypeRow& row : kDTypes) names.push_back(row.name);
  return names;
}

constexpr std::array<std::string_view, 5> kBackendNames = {"automatic", "shm", "gloo", "nccl", "hosts"};

// DLDeviceType of dlpack.h.
constexpr int kDLCPU = 1;
constexpr int kDLCUDA = 2;
constexpr int kDLCUDAHost = 3;

constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames = {"sum", "product", "min", "max",
                                                                         "avg", "band",    "bor", "bxor"};

}  // namespace

std::string_view to_string(Collective collective) noexcept {
  return core::name_at(kCollectiveNames, static_cast<std::size_t>(collective));
}

Collective collective_from_string(std::string_view name) {
  return core::value_of<Collective>(kCollectiveNames, name, "collective");
}

std::string_view to_string(DType dtype) noexcept {
  const std::size_t size = size_of(dtype);
  if (size == 0) return dtype == DType::bytes ? "bytes" : "?";
  if (!is_opaque(dtype)) return row_of(dtype).name;
  try {
    return opaque_name(size);
  } catch (const std::bad_alloc&) {
    return kOpaqueRow.name;
  }
}

DType dtype_from_string(std::string_view name) {
  if (const auto opaque = opaque_from_name(name)) return *opaque;
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown dtype '{}'; use one of {}, or bytes[N] for opaque "
                                                       "elements of N bytes",
                                                       name, core::joined(names_of_dtypes(), ", ")));
}

std::string_view to_string(Order order) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"any", "rank", "tree", "exact"};
  return core::name_at(kNames, static_cast<std::size_t>(order));
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

float8_e4m3fn::float8_e4m3fn(float value) noexcept : bits(core::float_to_float8_e4m3fn(value)) {}
float8_e4m3fn::operator float() const noexcept {
  return core::float8_e4m3fn_to_float(bits);
}
float8_e5m2::float8_e5m2(float value) noexcept : bits(core::float_to_float8_e5m2(value)) {}
float8_e5m2::operator float() const noexcept {
  return core::float8_e5m2_to_float(bits);
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
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].dlpack_code == code && static_cast<int>(8 * kDTypes[i].size) == bits) return static_cast<DType>(i);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("from_dlpack: no dtype for type code {} with {} bits; convert the tensor to one of {}", code,
                          bits, core::joined(names_of_dtypes(), ", ")));
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

// ---- Op ------------------------------------------------------------------------------------------------------------

std::string_view to_string(ReduceOp op) noexcept {
  return core::name_at(kReduceOpNames, static_cast<std::size_t>(op));
}

ReduceOp reduce_op_from_string(std::string_view name) {
  return core::value_of<ReduceOp>(kReduceOpNames, name, "reduce op");
}

struct Op::User {
  UserFunction function;
  bool commutative;
  std::string name;
};

Op::Op(ReduceOp op) noexcept : op_(op) {}

Op Op::premul_sum(double scale) {
  Op op(ReduceOp::sum);
  op.kind_ = Kind::premul_sum;
  op.scale_ = scale;
  return op;
}

Op Op::user(UserFunction function, bool commutative, std::string name) {
  if (!function) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Op::user('{}'): the function is empty; pass one that can be called", name));
  }
  Op op(ReduceOp::sum);
  op.kind_ = Kind::user;
  op.user_ = std::make_shared<const User>(User{std::move(function), commutative, std::move(name)});
  return op;
}

bool Op::commutative() const noexcept {
  return kind_ != Kind::user || user_->commutative;
}

const Op::UserFunction& Op::user_function() const {
  if (kind_ != Kind::user) {
    throw Error(ErrorCode::internal, fmt::format("Op::user_function: '{}' is no user op; check kind() first", name()));
  }
  return user_->function;
}

std::string_view Op::name() const noexcept {
  switch (kind_) {
    case Kind::premul_sum:
      return "premul_sum";
    case Kind::user:
      return user_->name;
    case Kind::builtin:
      break;
  }
  return to_string(op_);
}

}  // namespace col

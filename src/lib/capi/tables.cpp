// The numbers of <col/col.h>, held against those of C++, and their names.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <col/error.hpp>
#include <col/group.hpp>
#include <col/types.hpp>

#include "capi/guard.hpp"

namespace col::capi {
namespace {

template <class Enum>
struct Number {
  int in_c;
  Enum in_cpp;
};

// Whether both have the same numbers, `offset` apart, and all of them, from the first on.
template <class Enum, std::size_t N>
constexpr bool agree(const std::array<Number<Enum>, N>& numbers, int offset = 0) {
  for (std::size_t i = 0; i < N; ++i) {
    if (numbers[i].in_c != static_cast<int>(i) + offset || numbers[i].in_cpp != static_cast<Enum>(i)) return false;
  }
  return true;
}

constexpr std::array<Number<Collective>, kCollectiveCount> kCollectiveNumbers = {{
    {COL_ALLREDUCE, Collective::allreduce},
    {COL_REDUCE, Collective::reduce},
    {COL_BROADCAST, Collective::broadcast},
    {COL_ALLGATHER, Collective::allgather},
    {COL_ALLGATHERV, Collective::allgatherv},
    {COL_REDUCE_SCATTER, Collective::reduce_scatter},
    {COL_REDUCE_SCATTERV, Collective::reduce_scatterv},
    {COL_GATHER, Collective::gather},
    {COL_GATHERV, Collective::gatherv},
    {COL_SCATTER, Collective::scatter},
    {COL_SCATTERV, Collective::scatterv},
    {COL_ALLTOALL, Collective::alltoall},
    {COL_ALLTOALLV, Collective::alltoallv},
    {COL_SCAN, Collective::scan},
    {COL_EXSCAN, Collective::exscan},
    {COL_BARRIER, Collective::barrier},
    {COL_SEND, Collective::send},
    {COL_RECV, Collective::recv},
}};
static_assert(agree(kCollectiveNumbers));

constexpr std::array<Number<DType>, kDTypeCount> kDTypeNumbers = {{
    {COL_INT8, DType::int8},
    {COL_UINT8, DType::uint8},
    {COL_INT32, DType::int32},
    {COL_UINT32, DType::uint32},
    {COL_INT64, DType::int64},
    {COL_UINT64, DType::uint64},
    {COL_FLOAT16, DType::float16},
    {COL_BFLOAT16, DType::bfloat16},
    {COL_FLOAT32, DType::float32},
    {COL_FLOAT64, DType::float64},
    {COL_INT16, DType::int16},
    {COL_UINT16, DType::uint16},
    {COL_BOOLEAN, DType::boolean},
    {COL_COMPLEX64, DType::complex64},
    {COL_COMPLEX128, DType::complex128},
    {COL_FLOAT8_E4M3FN, DType::float8_e4m3fn},
    {COL_FLOAT8_E5M2, DType::float8_e5m2},
}};
static_assert(agree(kDTypeNumbers) && COL_BYTES == static_cast<int>(DType::bytes));

constexpr std::array<Number<ReduceOp>, kReduceOpCount> kReduceOpNumbers = {{
    {COL_SUM, ReduceOp::sum},
    {COL_PRODUCT, ReduceOp::product},
    {COL_MIN, ReduceOp::min},
    {COL_MAX, ReduceOp::max},
    {COL_AVG, ReduceOp::avg},
    {COL_BAND, ReduceOp::band},
    {COL_BOR, ReduceOp::bor},
    {COL_BXOR, ReduceOp::bxor},
}};
static_assert(agree(kReduceOpNumbers));

constexpr std::array<Number<ErrorCode>, 11> kCodeNumbers = {{
    {COL_ERROR_INVALID_ARGUMENT, ErrorCode::invalid_argument},
    {COL_ERROR_NOT_INITIALIZED, ErrorCode::not_initialized},
    {COL_ERROR_ALREADY_INITIALIZED, ErrorCode::already_initialized},
    {COL_ERROR_MISMATCH, ErrorCode::mismatch},
    {COL_ERROR_TIMEOUT, ErrorCode::timeout},
    {COL_ERROR_PEER_LOST, ErrorCode::peer_lost},
    {COL_ERROR_ABORTED, ErrorCode::aborted},
    {COL_ERROR_UNAVAILABLE, ErrorCode::unavailable},
    {COL_ERROR_RESOURCE, ErrorCode::resource},
    {COL_ERROR_IO, ErrorCode::io},
    {COL_ERROR_INTERNAL, ErrorCode::internal},
}};
static_assert(agree(kCodeNumbers, 1));  // 0 is COL_OK

static_assert(COL_DEVICE_CPU == static_cast<int>(Device::Type::cpu));
static_assert(COL_DEVICE_CUDA == static_cast<int>(Device::Type::cuda));

// The names of C++ are literals, or kept for ever, with a zero byte behind them.
const char* name_or_null(bool is_known, std::string_view name) {
  return is_known ? name.data() : nullptr;
}

bool is_below(std::int32_t number, int count) {
  return number >= 0 && number < count;
}

}  // namespace
}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

const char* col_version(void) {
  return col::version().data();
}

int32_t col_code_count(void) {
  return static_cast<std::int32_t>(kCodeNumbers.size()) + 1;
}
const char* col_code_name(int32_t code) {
  if (code == COL_OK) return "ok";
  return name_or_null(is_below(code, col_code_count()), to_string(static_cast<col::ErrorCode>(code - 1)));
}

int32_t col_collective_count(void) {
  return col::kCollectiveCount;
}
const char* col_collective_name(int32_t collective) {
  return name_or_null(is_below(collective, col::kCollectiveCount), to_string(static_cast<col::Collective>(collective)));
}
int32_t col_collective_from_name(const char* name, int32_t* collective, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& number = result(collective, "collective");
    number = static_cast<std::int32_t>(col::collective_from_string(&required(name, "name")));
  });
}

int32_t col_dtype_count(void) {
  return col::kDTypeCount;
}
const char* col_dtype_name(uint32_t dtype) {
  return name_or_null(col_dtype_size(dtype) != 0, to_string(static_cast<col::DType>(dtype)));
}
size_t col_dtype_size(uint32_t dtype) {
  return size_of(static_cast<col::DType>(dtype));
}
int32_t col_dtype_from_name(const char* name, uint32_t* dtype, col_error** error) {
  return guarded(error, [&] {
    std::uint32_t& number = result(dtype, "dtype");
    number = static_cast<std::uint32_t>(col::dtype_from_string(&required(name, "name")));
  });
}
uint32_t col_dtype_opaque(size_t bytes) {
  return static_cast<std::uint32_t>(col::opaque(bytes));
}

int32_t col_reduce_op_count(void) {
  return col::kReduceOpCount;
}
const char* col_reduce_op_name(int32_t op) {
  if (op == COL_PREMUL_SUM) return "premul_sum";
  return name_or_null(is_below(op, col::kReduceOpCount), to_string(static_cast<col::ReduceOp>(op)));
}
int32_t col_reduce_op_from_name(const char* name, int32_t* op, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& number = result(op, "op");
    const std::string_view wanted = &required(name, "name");
    number = wanted == col_reduce_op_name(COL_PREMUL_SUM)
                 ? COL_PREMUL_SUM
                 : static_cast<std::int32_t>(col::reduce_op_from_string(wanted));
  });
}

}  // extern "C"

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <col/types.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using core_test::error_of;

namespace {

// The members of a DLTensor that a view is made of.
struct FakeDLTensor {
  void* data = nullptr;
  struct {
    int device_type = 1;
    int device_id = 0;
  } device;
  int ndim = 0;
  struct {
    std::uint8_t code = 2;
    std::uint8_t bits = 32;
    std::uint16_t lanes = 1;
  } dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

}  // namespace

TEST_CASE("dtype: names and sizes of all", "[dtype]") {
  const std::vector<std::pair<std::string, std::size_t>> expected = {
      {"int8", 1},    {"uint8", 1},     {"int32", 4},       {"uint32", 4},        {"int64", 8},      {"uint64", 8},
      {"float16", 2}, {"bfloat16", 2},  {"float32", 4},     {"float64", 8},       {"int16", 2},      {"uint16", 2},
      {"boolean", 1}, {"complex64", 8}, {"complex128", 16}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
  REQUIRE(expected.size() == col::kDTypeCount);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = static_cast<col::DType>(i);
    CHECK(to_string(dtype) == expected[i].first);
    CHECK(size_of(dtype) == expected[i].second);
    CHECK(col::dtype_from_string(expected[i].first) == dtype);
  }
}

TEST_CASE("dtype: an opaque type has its size in its name", "[dtype]") {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{3}, std::size_t{255}, std::size_t{256}, std::size_t{5000}, col::kMaxElementBytes}) {
    const col::DType dtype = col::opaque(size);
    CHECK(is_opaque(dtype));
    CHECK(size_of(dtype) == size);
    CHECK(to_string(dtype) == "bytes[" + std::to_string(size) + "]");
    CHECK(col::dtype_from_string(to_string(dtype)) == dtype);
    CHECK(row_of(dtype).kind == col::ElementKind::opaque);
  }
  CHECK(col::opaque(3) != col::opaque(4));
  for (const col::DType none : {col::opaque(0), col::opaque(col::kMaxElementBytes + 1), col::DType::bytes}) {
    CHECK(size_of(none) == 0);
    CHECK(to_string(none) == "bytes");
  }
  for (const char* name : {"bytes", "bytes[]", "bytes[0]", "bytes[-1]", "bytes[3", "bytes[3]x", "bytes[ 3]",
                           "bytes[1e3]", "bytes[1073741825]", "bytes[99999999999999999999]"})
    CHECK(error_of([&] { col::dtype_from_string(name); }).code() == col::ErrorCode::invalid_argument);
}

TEST_CASE("enumerations: a value outside is named ? and has no size", "[dtype]") {
  for (const int value : {200, 255}) {
    CHECK(to_string(static_cast<col::DType>(value)) == "?");
    CHECK(size_of(static_cast<col::DType>(value)) == 0);
    CHECK(to_string(static_cast<col::ReduceOp>(value)) == "?");
    CHECK(to_string(static_cast<col::Backend>(value)) == "?");
  }
  CHECK(to_string(static_cast<col::ErrorCode>(-1)) == "?");
  CHECK(to_string(static_cast<col::ErrorCode>(1000)) == "?");
}

TEST_CASE("enumerations: an unknown name is refused with the names that work", "[dtype]") {
  core_test::check_error(col::ErrorCode::invalid_argument, {"unknown dtype 'float17'", "int8, uint8, int32"},
                         [] { col::dtype_from_string("float17"); });
  CHECK(error_of([] { col::reduce_op_from_string(""); }).message().find("sum, product, min") != std::string::npos);
  CHECK(error_of([] { col::backend_from_string("mpi"); }).message().find("shm, gloo, nccl") != std::string::npos);
}

TEST_CASE("reduce op and backend: names there and back", "[dtype]") {
  for (int i = 0; i < col::kReduceOpCount; ++i) {
    const auto op = static_cast<col::ReduceOp>(i);
    CHECK(col::reduce_op_from_string(to_string(op)) == op);
  }
  for (const auto backend :
       {col::Backend::automatic, col::Backend::shm, col::Backend::gloo, col::Backend::nccl, col::Backend::hosts})
    CHECK(col::backend_from_string(to_string(backend)) == backend);
  CHECK(col::backend_from_string("auto") == col::Backend::automatic);
}

TEST_CASE("op: what it says about itself", "[op]") {
  const col::Op max = col::ReduceOp::max;
  CHECK(max.kind() == col::Op::Kind::builtin);
  CHECK(max.reduce_op() == col::ReduceOp::max);
  CHECK(max.name() == "max");
  CHECK(max.commutative());

  const col::Op scaled = col::Op::premul_sum(0.5);
  CHECK(scaled.kind() == col::Op::Kind::premul_sum);
  CHECK(scaled.reduce_op() == col::ReduceOp::sum);
  CHECK(scaled.scale() == 0.5);
  CHECK(scaled.name() == "premul_sum");

  int calls = 0;
  const auto count_call = [&](const void*, const void*, void*, std::size_t, col::DType) { ++calls; };
  col::Op copy = max;
  {
    const col::Op user = col::Op::user(count_call, false, "first");
    copy = user;
  }
  CHECK(copy.name() == "first");
  CHECK_FALSE(copy.commutative());
  copy.user_function()(nullptr, nullptr, nullptr, 0, col::DType::int8);
  CHECK(calls == 1);
}

TEST_CASE("op: an empty user function is refused, and a builtin has none", "[op]") {
  CHECK(error_of([] { col::Op::user({}, true, "mine"); }).message().find("'mine'") != std::string::npos);
  CHECK(error_of([] { static_cast<void>(col::Op(col::ReduceOp::sum).user_function()); }).code() ==
        col::ErrorCode::internal);
}

TEST_CASE("views: made from vectors, arrays and spans, sliced by elements", "[views]") {
  std::vector<float> vector(10);
  std::array<std::int64_t, 3> array{};
  unsigned char bytes[5] = {};
  const std::vector<double> constant(4);
  const col::TensorView from_vector = vector;
  CHECK(from_vector.data == vector.data());
  CHECK(from_vector.count == 10);
  CHECK(from_vector.dtype == col::DType::float32);
  CHECK(from_vector.bytes() == 40);
  CHECK(from_vector.slice(3, 2).data == vector.data() + 3);
  CHECK(from_vector.slice(3, 2).count == 2);
  CHECK(col::TensorView(array).dtype == col::DType::int64);
  CHECK(col::TensorView(bytes).dtype == col::DType::uint8);
  CHECK(col::TensorView(std::span(array)).count == 3);
  const col::ConstTensorView from_constant = constant;
  CHECK(from_constant.data == constant.data());
  CHECK(from_constant.dtype == col::DType::float64);
  const col::ConstTensorView from_view = from_vector;
  CHECK(from_view.data == vector.data());
  CHECK(from_view.slice(9, 1).data == vector.data() + 9);
  // long and long long are both 64 bits, and both elements.
  CHECK(col::dtype_of<long long>() == col::DType::int64);
  CHECK(col::dtype_of<long>() == col::DType::int64);
  CHECK(col::dtype_of<std::byte>() == col::DType::uint8);
  CHECK(col::dtype_of<short>() == col::DType::int16);
  CHECK(col::dtype_of<std::uint16_t>() == col::DType::uint16);
  CHECK(col::dtype_of<bool>() == col::DType::boolean);
  CHECK(col::dtype_of<col::float8_e4m3fn>() == col::DType::float8_e4m3fn);
  CHECK(col::dtype_of<const col::float8_e5m2>() == col::DType::float8_e5m2);
  CHECK(col::dtype_of<std::complex<float>>() == col::DType::complex64);
  CHECK(col::dtype_of<std::complex<double>>() == col::DType::complex128);
}

TEST_CASE("from_dlpack: every supported element type", "[views]") {
  const std::vector<std::pair<std::pair<int, int>, col::DType>> types = {
      {{0, 8}, col::DType::int8},           {{1, 8}, col::DType::uint8},       {{0, 32}, col::DType::int32},
      {{1, 32}, col::DType::uint32},        {{0, 64}, col::DType::int64},      {{1, 64}, col::DType::uint64},
      {{2, 16}, col::DType::float16},       {{4, 16}, col::DType::bfloat16},   {{2, 32}, col::DType::float32},
      {{2, 64}, col::DType::float64},       {{0, 16}, col::DType::int16},      {{1, 16}, col::DType::uint16},
      {{6, 8}, col::DType::boolean},        {{5, 64}, col::DType::complex64},  {{5, 128}, col::DType::complex128},
      {{10, 8}, col::DType::float8_e4m3fn}, {{12, 8}, col::DType::float8_e5m2}};
  for (const auto& [type, dtype] : types) CHECK(col::detail::dtype_from_dlpack(type.first, type.second, 1) == dtype);
  // Another format of 8 bits, which ml_dtypes calls float8_e4m3.
  CHECK(error_of([] { col::detail::dtype_from_dlpack(8, 8, 1); }).code() == col::ErrorCode::invalid_argument);
  CHECK(error_of([] { col::dtype_from_string("float8_e4m3"); }).code() == col::ErrorCode::invalid_argument);
  CHECK(error_of([] { col::detail::dtype_from_dlpack(0, 128, 1); }).code() == col::ErrorCode::invalid_argument);
  CHECK(error_of([] { col::detail::dtype_from_dlpack(3, 64, 1); }).code() == col::ErrorCode::invalid_argument);
  CHECK(error_of([] { col::detail::dtype_from_dlpack(2, 32, 4); }).message().find("4 lanes") != std::string::npos);
}

TEST_CASE("from_dlpack: shape, strides, offset and device", "[views]") {
  std::vector<float> data(24);
  std::array<std::int64_t, 3> shape = {2, 3, 4};
  std::array<std::int64_t, 3> strides = {12, 4, 1};
  FakeDLTensor tensor;
  tensor.data = data.data();
  tensor.ndim = 3;
  tensor.shape = shape.data();

  SECTION("without strides it is contiguous") {
    CHECK(col::TensorView::from_dlpack(tensor).count == 24);
  }
  SECTION("contiguous strides") {
    tensor.strides = strides.data();
    CHECK(col::TensorView::from_dlpack(tensor).count == 24);
  }
  SECTION("a transposed tensor is refused") {
    strides = {1, 2, 6};
    tensor.strides = strides.data();
    CHECK(error_of([&] { col::TensorView::from_dlpack(tensor); }).message().find("contiguous") != std::string::npos);
  }
  SECTION("the stride of an extent of one means nothing") {
    shape = {2, 1, 12};
    strides = {12, 999, 1};
    tensor.strides = strides.data();
    CHECK(col::TensorView::from_dlpack(tensor).count == 24);
  }
  SECTION("an empty tensor is legal, whatever its strides") {
    shape = {2, 0, 4};
    strides = {4, 4, 1};
    tensor.strides = strides.data();
    CHECK(col::TensorView::from_dlpack(tensor).empty());
  }
  SECTION("a scalar has one element") {
    tensor.ndim = 0;
    CHECK(col::TensorView::from_dlpack(tensor).count == 1);
  }
  SECTION("the byte offset counts") {
    tensor.byte_offset = 8;
    CHECK(col::TensorView::from_dlpack(tensor).data == data.data() + 2);
  }
  SECTION("a negative extent and one beyond memory are refused") {
    shape = {2, -1, 4};
    CHECK(error_of([&] { col::TensorView::from_dlpack(tensor); }).code() == col::ErrorCode::invalid_argument);
    shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 1};
    CHECK(error_of([&] { col::TensorView::from_dlpack(tensor); }).code() == col::ErrorCode::invalid_argument);
  }
  SECTION("devices") {
    tensor.device.device_type = 3;  // pinned host memory
    CHECK(col::TensorView::from_dlpack(tensor).device == col::Device{});
    tensor.device.device_type = 2;
    tensor.device.device_id = 5;
    CHECK(col::TensorView::from_dlpack(tensor).device == col::Device{col::Device::Type::cuda, 5});
    tensor.device.device_type = 7;
    CHECK(error_of([&] { col::TensorView::from_dlpack(tensor); }).message().find("device type 7") != std::string::npos);
  }
}

// Cells, what passes between ranks, and the values that operations work on.
#include <array>
#include <cstddef>

#include <col/channel.hpp>

#include "colbench/cell/cell.hpp"
#include "colbench/rank/player.hpp"
#include "colbench/workload/buffer.hpp"
#include "common/command_line.hpp"
#include "support/catch.hpp"

using namespace col;
using namespace col::colbench;

TEST_CASE("cell: every operation has a name of its own, and is found by it", "[colbench]") {
  for (int i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    CHECK(operation_from_string(to_string(operation)) == operation);
    if (const auto collective = collective_of(operation)) CHECK(col::to_string(*collective) == to_string(operation));
  }
  CHECK_FALSE(operation_from_string("allredcue"));
}

TEST_CASE("cell: sizes are read as they are written", "[colbench]") {
  CHECK(parse_size("8") == 8U);
  CHECK(parse_size("32M") == std::size_t{32} << 20);
  CHECK(parse_size("1.5k") == 1536U);
  CHECK(parse_size("2G") == std::size_t{2} << 30);
  for (const char* text : {"", "K", "32X", "32MX", "-1", "1e3", "0.3", "1 K", "99999999999999999999"})
    CHECK_FALSE(parse_size(text));
  for (const std::size_t bytes : {8UL, 1000UL, 1024UL, 1536UL, 65536UL, 33554432UL, 3UL << 30})
    CHECK(parse_size(size_text(bytes)) == bytes);
  CHECK(size_text(1000) == "1000");
  CHECK(size_text(1536) == "1.5K");
  CHECK(size_text(33'554'432) == "32M");
}

TEST_CASE("cell: size is that of the larger buffer, cut into equal blocks", "[colbench]") {
  CellSpec spec{.operation = Operation::allreduce, .bytes = 1024};
  CHECK(block_count(spec, 3) == 256);
  CHECK(whole_bytes(spec, 3) == 1024);
  spec.operation = Operation::allgather;
  CHECK(block_count(spec, 3) == 85);
  CHECK(whole_bytes(spec, 3) == 3 * 85 * 4);
  spec.bytes = 1;
  CHECK(block_count(spec, 8) == 1);
  spec.operation = Operation::barrier;
  CHECK(block_count(spec, 8) == 0);
}

namespace {

// All that is asked of it is what memory it moves.
class GpusOnly : public col::BackendFactory {
 public:
  std::string_view name() const override { return "gpus_only"; }
  std::optional<std::string> unavailable_reason() const override { return "a test's own"; }
  col::Device::Type device() const override { return col::Device::Type::cuda; }
  std::unique_ptr<col::Channel> connect(const col::ConnectRequest&, col::WaitContext&) override { return nullptr; }
  std::string describe(const col::ConnectRequest&) const override { return {}; }
};

}  // namespace

TEST_CASE("cell: which rank's buffers are on a GPU", "[colbench]") {
  using col::Device;
  col::register_backend(std::make_unique<GpusOnly>());
  for (const bool begins : {true, false}) {
    CHECK(device_of(Devices::cpu, begins) == Device::Type::cpu);
    CHECK(device_of(Devices::cuda, begins) == Device::Type::cuda);
    CHECK(device_of(Devices::cpu_cuda, begins) == (begins ? Device::Type::cpu : Device::Type::cuda));
    CHECK(device_of(Devices::cuda_cpu, begins) == (begins ? Device::Type::cuda : Device::Type::cpu));
  }
  CHECK_FALSE(needs_gpu({}));
  CHECK_FALSE(needs_gpu({.backend = "shm"}));
  CHECK(needs_gpu({.backend = "gpus_only"}));
  CHECK(needs_gpu({.device = Devices::cpu_cuda}));
}

TEST_CASE("cell: buffers in turn are together larger than the caches of the processor and of the GPU", "[colbench]") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const CellSpec spec{.operation = Operation::allreduce, .bytes = kMiB};
  CHECK(rotated_sets(spec, 2) * 2 * kMiB > 128 * kMiB);
  CHECK(rotated_sets(spec, 2, 50 * kMiB) == rotated_sets(spec, 2));
  CHECK(rotated_sets(spec, 2, 126 * kMiB) * 2 * kMiB > 2 * 126 * kMiB);
  CHECK(rotated_sets({.operation = Operation::allreduce, .bytes = 8}, 2, 126 * kMiB) == 4096);
}

TEST_CASE("order: crosses as text and is the same afterwards", "[colbench]") {
  col::colbench::Order order{
      .method = {.ranks = 5, .launches = 7, .seed = 0xffff'ffff'ffffU, .skew = "late:1:20", .fits = {"shm"}},
      .launch = 3,
      .calibrations = 5,
      .begun_ns = 1'700'000'000'123'456'789};
  order.cells.push_back(
      {.operation = Operation::scan, .backend = "gloo", .algorithm = "knomial:radix=8", .bytes = 12, .ranks = 5});
  order.cells.push_back({.operation = Operation::pingpong, .bytes = 8, .ranks = 5, .pair = std::pair(2, 4)});
  const col::colbench::Order back = decode_order(encode(order));
  CHECK(back.cells == order.cells);
  CHECK(back.launch == 3);
  CHECK(back.calibrations == 5);
  CHECK(back.begun_ns == order.begun_ns);
  CHECK(back.method.ranks == 5);
  CHECK(back.method.launches == 7);
  CHECK(back.method.seed == order.method.seed);
  CHECK(back.method.skew == order.method.skew);
  CHECK(back.method.fits == order.method.fits);
  CHECK_THROWS_AS(decode_order("{}"), col::tools::UsageError);
}

TEST_CASE("answer: crosses as bytes, and is refused when cut short", "[colbench]") {
  Answer answer{
      .trouble = "x", .code = col::ErrorCode::timeout, .operations = 4, .began = {1e-6}, .ended = {2e-6, 3e-6}};
  answer.check = {.mode = "all", .elements = 9, .wrong = 2, .first = "here"};
  const std::string bytes = encode(answer);
  const Answer back = decode_answer(bytes);
  CHECK(back.trouble == "x");
  CHECK(back.code == col::ErrorCode::timeout);
  CHECK(back.ended == answer.ended);
  CHECK(back.check.first == "here");
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_THROWS(decode_answer(bytes.substr(0, size)));
}

TEST_CASE("placement: who is in which group, and where", "[colbench]") {
  CHECK(placement_of("", 3, 8).size == 8);
  CHECK(placement_of("mod:2", 5, 8).group == 1);
  CHECK(placement_of("mod:2", 5, 8).rank == 2);
  CHECK(placement_of("mod:2", 5, 8).size == 4);
  CHECK(placement_of("div:4", 6, 8).group == 1);
  CHECK(placement_of("div:4", 6, 8).rank == 2);
  CHECK(placement_of("pairs", 8, 9).size == 1);
  CHECK(placement_of("bisect", 4, 9).group == 1);
  CHECK(placement_of("bisect", 4, 9).size == 5);
}

TEST_CASE("values: an element comes back as it was stored, in every type", "[colbench]") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    std::array<std::byte, 16> element{};
    for (const std::int64_t value : {1, 8, 100}) {
      if (dtype == DType::boolean && value != 1) continue;
      if (row_of(dtype).is_narrow() && size_of(dtype) == 1 && value > 8) continue;  // these have no 100
      store_element(element.data(), dtype, value);
      CHECK(load_element(element.data(), dtype) == static_cast<double>(value));
      CHECK(is_element(element.data(), dtype, static_cast<double>(value)));
      CHECK_FALSE(is_element(element.data(), dtype, static_cast<double>(value) + 1, 0));
    }
  }
}

TEST_CASE("values: every byte of an opaque element, and both parts of a complex number, count", "[colbench]") {
  std::array<std::byte, 24> element{};
  for (const std::size_t size : {1, 3, 8, 13, 24}) {
    store_element(element.data(), opaque(size), 100);
    CHECK(is_element(element.data(), opaque(size), 100));
    element[size - 1] ^= std::byte{1};
    CHECK_FALSE(is_element(element.data(), opaque(size), 100));
  }
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    store_element(element.data(), dtype, 3);
    CHECK(is_element(element.data(), dtype, 3));
    element[size_of(dtype) - 1] = std::byte{0x40};
    CHECK_FALSE(is_element(element.data(), dtype, 3));
  }
}

TEST_CASE("values: an average over ranks may be rounded once for each, and no more", "[colbench]") {
  std::array<std::byte, 8> element{};
  store_element(element.data(), DType::bfloat16, 5.375);  // three ranks' 16, each third rounded first
  CHECK(is_element(element.data(), DType::bfloat16, 16.0 / 3, 3));
  CHECK_FALSE(is_element(element.data(), DType::bfloat16, 16.0 / 3));
  CHECK_FALSE(is_element(element.data(), DType::bfloat16, 15.0 / 3, 3));
}

TEST_CASE("values: floats of 8 bits are right as near as they can be, and where they end", "[colbench]") {
  const auto holds = [](DType dtype, double stored, double expected, int averaged) {
    std::byte element{};
    store_element(&element, dtype, stored);
    return is_element(&element, dtype, expected, averaged);
  };
  for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    INFO(col::to_string(dtype));
    CHECK(holds(dtype, 33, 33, 1));  // kept as 32
    CHECK_FALSE(holds(dtype, 33, 33, 0));
    CHECK_FALSE(holds(dtype, 33, 64, 1));
    CHECK(holds(dtype, 1e6, 1e6, 1));  // NaN, or infinity
    CHECK_FALSE(holds(dtype, 1e6, 400, 1));
  }
  CHECK_FALSE(holds(DType::float8_e5m2, -1e6, 1e6, 1));
  CHECK(holds(DType::float8_e4m3fn, 448, 500, 1));  // as NCCL has it
  CHECK_FALSE(holds(DType::float8_e4m3fn, -448, 500, 1));
  CHECK_FALSE(holds(DType::float8_e4m3fn, 256, 500, 1));
}

TEST_CASE("values: what two ranks, blocks, places or iterations bring differs more often than not", "[colbench]") {
  const Values values{.seed = 7};
  int equal = 0;
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const auto index = static_cast<std::size_t>(i);
    equal += values.at(0, 0, index, 1) == values.at(1, 0, index, 1);
    equal += values.at(0, 0, index, 1) == values.at(0, 1, index, 1);
    equal += values.at(0, 0, index, 1) == values.at(0, 0, index, 2);
  }
  CHECK(equal < 3 * kTries / 5);  // one in eight by chance
}

TEST_CASE("values: what moves is compared with what its type keeps of it", "[colbench]") {
  std::array<std::byte, 16> element{};
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    store_element(element.data(), dtype, 5);
    CHECK(is_element(element.data(), dtype, kept(5, dtype), 0));
  }
}

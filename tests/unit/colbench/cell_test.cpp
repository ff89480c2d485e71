#include "colbench/cell.hpp"

#include <memory>

#include <col/backend.hpp>

#include "colbench/rank/collective_workload.hpp"
#include "support/catch.hpp"

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
  for (const char* text : {"", "K", "32X", "32MB", "-1", "1e3", "0.3", "1 K", "99999999999999999999"})
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
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  const CellSpec spec{.operation = Operation::allreduce, .bytes = kMebi};
  CHECK(rotated_sets(spec, 2) * 2 * kMebi > 128 * kMebi);
  CHECK(rotated_sets(spec, 2, 50 * kMebi) == rotated_sets(spec, 2));
  CHECK(rotated_sets(spec, 2, 126 * kMebi) * 2 * kMebi > 2 * 126 * kMebi);
  CHECK(rotated_sets({.operation = Operation::allreduce, .bytes = 8}, 2, 126 * kMebi) == 4096);
}

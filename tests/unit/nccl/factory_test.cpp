// What the backend makes of its environment, and of operators. By the stand-ins.
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "backend/module.hpp"
#include "backend/nccl/device.hpp"
#include "backend/nccl/translate.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"

extern "C" const col::backend::Module* col_backend_entry();

namespace col::nccl_backend {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

std::unique_ptr<BackendFactory> factory_with(const Variables& variables) {
  return col_backend_entry()->make_factory([variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// A world of ranks on two hosts, two on each, seen by rank 3.
ConnectRequest request_of(const std::vector<PeerInfo>& peers) {
  ConnectRequest request;
  request.group = "g";
  request.rank = 3;
  request.size = 4;
  request.peers = peers;
  return request;
}

std::vector<PeerInfo> two_hosts() {
  std::vector<PeerInfo> peers(4);
  for (int rank = 0; rank < 4; ++rank) {
    peers[static_cast<std::size_t>(rank)].rank = rank;
    peers[static_cast<std::size_t>(rank)].boot_id = rank < 2 ? "one" : "other";
  }
  return peers;
}

TEST_CASE("nccl factory: a rank takes the GPU that is current, else that of its number on its host", "[nccl]") {
  const std::vector<PeerInfo> peers = two_hosts();
  const auto taken = [&](const Variables& variables) { return factory_with(variables)->describe(request_of(peers)); };
  CHECK(taken({}).find("fake GPU 1 ") != std::string::npos);
  CHECK(taken({{"COL_LOCAL_RANK", "5"}, {"LOCAL_RANK", "6"}}).find("fake GPU 5 ") != std::string::npos);
  CHECK(taken({{"LOCAL_RANK", "6"}}).find("fake GPU 6 ") != std::string::npos);
  CHECK(taken({{"LOCAL_RANK", "11"}}).find("fake GPU 3 ") != std::string::npos);
  const CudaDriver cuda;
  const GpuDevice device(cuda, 7);
  const GpuDevice::Scope scope(device);
  CHECK(taken({{"LOCAL_RANK", "6"}}).find("fake GPU 7 ") != std::string::npos);
}

TEST_CASE("nccl factory: a form that there is not is refused, and says which there are", "[nccl]") {
  const auto factory = factory_with({{"COL_NCCL_BLOCKING", "perhaps"}});
  std::vector<PeerInfo> peers(1);
  ConnectRequest request;
  request.group = "g";
  request.store = make_memory_store();
  request.peers = peers;
  WaitContext wait(Deadline::after(test::kDeadline));
  try {
    (void)factory->connect(request, wait);
    FAIL("it connects");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find("COL_NCCL_BLOCKING is 'perhaps'; it is off or on") != std::string::npos);
  }
}

TEST_CASE("nccl factory: of the interfaces, NCCL hears those that are there", "[nccl]") {
  CHECK(!factory_with({{"COL_SOCKET_IFNAME", "none0,lo"}, {"NCCL_SOCKET_IFNAME", "mine"}})->unavailable_reason());
  CHECK(std::getenv("NCCL_SOCKET_IFNAME") == nullptr);
  CHECK(!factory_with({{"COL_SOCKET_IFNAME", "none0,lo"}})->unavailable_reason());
  REQUIRE(std::getenv("NCCL_SOCKET_IFNAME") != nullptr);
  CHECK(std::string(std::getenv("NCCL_SOCKET_IFNAME")) == "=lo");
  ::unsetenv("NCCL_SOCKET_IFNAME");
}

TEST_CASE("nccl factory: ranks share a GPU where NCCL can, and is told so", "[nccl]") {
  CHECK(factory_with({})->why_alone() ==
        "NCCL 2.28.9 serves one rank on each, and 2.30.3 is the first that serves more");
}

TEST_CASE("nccl operators: those that NCCL has, by type", "[nccl]") {
  CHECK(nccl_reduces(ReduceOp::sum, DType::float32));
  CHECK(!nccl_reduces(ReduceOp::bxor, DType::int32));
  CHECK(nccl_reduces(ReduceOp::sum, DType::complex64));
  CHECK(!nccl_reduces(ReduceOp::product, DType::complex64));
  CHECK(nccl_reduces(ReduceOp::max, DType::boolean));
  CHECK(!nccl_reduces(ReduceOp::sum, DType::boolean));
  CHECK(nccl_reduces(Op::premul_sum(0.5), DType::complex64));
  CHECK(to_nccl(ReduceOp::avg) == ncclAvg);
  CHECK(to_nccl(ReduceOp::min) == ncclMin);
  CHECK(to_nccl(DType::complex128, 3).count == 6);
  CHECK(to_nccl(DType::boolean, 3).type == ncclUint8);
  CHECK(wrapped(-1) == ~std::uint64_t{0});
  const auto refused = [](const Op& op, DType dtype) {
    try {
      Operator::require(op, dtype);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(ReduceOp::sum, DType::float32).empty());
  CHECK(refused(ReduceOp::bxor, DType::int32).find("NCCL cannot reduce int32 by 'bxor'") != std::string::npos);
  CHECK(refused(ReduceOp::sum, DType::float8_e4m3fn).find("rounds float8_e4m3fn at every hop") != std::string::npos);
}

}  // namespace
}  // namespace col::nccl_backend

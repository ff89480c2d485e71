// The thread that makes NCCL's calls in the blocking form, and how often it gets one. By the stand-ins.
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/nccl/channel.hpp"
#include "backend/nccl/launcher.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"
#include "support/prompt.hpp"
#include "support/soon.hpp"

namespace col::nccl_backend {
namespace {

const CudaDriver& driver() {
  static const CudaDriver kDriver;
  return kDriver;
}

ncclResult_t result_of(Launcher& launcher, NcclCall call) {
  launcher.begin(std::move(call));
  for (const Deadline deadline = Deadline::after(test::kDeadline); !launcher.is_free();) {
    launcher.await_briefly();
    REQUIRE_FALSE(deadline.expired());
  }
  return launcher.result();
}

// Asks the kernel about this thread of the process.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.substr(name_end, 3) == ") S";
}

TEST_CASE("nccl launcher: its thread makes all calls, one after the other, on its device", "[nccl]") {
  Launcher launcher(driver(), 2);
  std::thread::id first, second;
  int device = -1;
  CHECK(launcher.is_free());
  CHECK(result_of(launcher, [&] {
          first = std::this_thread::get_id();
          device = GpuDevice::current(driver());
          return ncclSystemError;
        }) == ncclSystemError);
  CHECK(result_of(launcher, [&] {
          second = std::this_thread::get_id();
          return ncclSuccess;
        }) == ncclSuccess);
  CHECK(first == second);
  CHECK(first != std::this_thread::get_id());
  CHECK(device == 2);
  CHECK(launcher.hand_overs() == 2);
}

TEST_CASE("nccl launcher: one that sleeps is woken", "[nccl]") {
  Launcher launcher(driver(), 0);
  pid_t thread = 0;
  for (int i = 0; i < 5; ++i) {
    CHECK(result_of(launcher, [&] {
            thread = ::gettid();
            return ncclSuccess;
          }) == ncclSuccess);
    REQUIRE(test::soon([&] { return sleeps(thread); }));
  }
}

TEST_CASE("nccl launcher: what a call owns has gone when it is known to have ended", "[nccl]") {
  Launcher launcher(driver(), 0);
  const auto owned = std::make_shared<int>(1);  // shared with the call
  for (int i = 0; i < 100; ++i) {
    CHECK(result_of(launcher, [owned] { return ncclSuccess; }) == ncclSuccess);
    CHECK(owned.use_count() == 1);
  }
}

TEST_CASE("nccl launcher: a thread that does not come back is left behind, with its device and what it uses",
          "[nccl]") {
  const std::size_t before = fake_gpu_alive("contexts");
  const auto begun = std::make_shared<std::latch>(1), owned = std::make_shared<std::latch>(1);  // shared with the call
  {
    Launcher launcher(driver(), 1);
    launcher.begin([begun, owned] {
      begun->count_down();
      owned->wait();
      return ncclSuccess;
    });
    begun->wait();  // a thread that is late finds that it is to end, and makes no call
    CHECK(!launcher.is_free());
  }
  CHECK(fake_gpu_alive("contexts") == before + 1);
  CHECK(owned.use_count() >= 2);
  owned->count_down();
  for (const Deadline deadline = Deadline::after(test::kDeadline); fake_gpu_alive("contexts") > before;)
    REQUIRE_FALSE(deadline.expired());
  CHECK(owned.use_count() == 1);
}

// ---- How often a call is handed over

std::optional<std::string> variable(std::string_view name) {
  return name == "COL_NCCL_BLOCKING" ? std::optional<std::string>("on") : std::nullopt;
}

// Two ranks, each with a channel over a communicator of its own.
struct Two {
  struct Side {
    std::shared_ptr<Launcher> launcher;  // shared with the communicator
    std::unique_ptr<NcclChannel> channel;
    std::unique_ptr<GpuMemory> memory;
  };

  Two() {
    const ncclUniqueId id = make_id(nccl);
    on_both([&](int rank) {
      auto device = std::make_unique<GpuDevice>(driver(), rank);
      const GpuDevice::Scope scope(*device);
      Side& side = sides[rank];
      side.memory = std::make_unique<GpuMemory>(driver(), 4096);
      side.launcher = Communicator::make_launcher(nccl, *device);
      auto communicator =
          std::make_unique<Communicator>(nccl, *device, Membership{.id = id, .rank = rank, .size = 2}, side.launcher);
      WaitContext wait(Deadline::after(test::kDeadline));
      communicator->connect(wait);
      side.channel = std::make_unique<NcclChannel>(
          NcclMultiChannel::Place{
              .group = "g", .rank = rank, .size = 2, .boot_id = "here", .devices = {2, 2}, .store = store},
          std::move(device), std::move(communicator));
    });
  }
  ~Two() {
    on_both([&](int rank) {
      sides[rank].channel.reset();
      const GpuDevice device(driver(), rank);
      release_on(device, sides[rank].memory);
    });
  }

  template <class Body>
  static void on_both(Body body) {
    std::future<void> other = std::async(std::launch::async, body, 1);
    body(0);
    other.get();
  }

  // How often rank 0 hands a call over, after the first time.
  std::size_t hand_overs(Request request) {
    for (int i = 0; i < 2; ++i) {
      before = sides[0].launcher->hand_overs();
      on_both([&](int rank) {
        const GpuDevice device(driver(), rank);
        const GpuDevice::Scope scope(device);
        Request own = request;
        own.in = ConstTensorView(sides[rank].memory->get(), request.in.count, DType::float32);
        own.out =
            TensorView(static_cast<std::byte*>(sides[rank].memory->get()) + 2048, request.out.count, DType::float32);
        WaitContext wait(Deadline::after(test::kDeadline));
        sides[rank].channel->native(own, wait);
      });
    }
    return sides[0].launcher->hand_overs() - before;
  }

  const std::shared_ptr<Store> store = make_memory_store();  // shared with the channels
  NcclLibrary nccl{&variable};
  Side sides[2];
  std::size_t before = 0;
};

TEST_CASE("nccl launcher: a collective is one hand-over, of NCCL's own or of messages", "[nccl]") {
  Two two;
  const std::size_t counts[] = {4, 4};
  const auto view = [](std::size_t count) { return TensorView(nullptr, count, DType::float32); };
  const Request allreduce{.collective = Collective::allreduce, .in = view(8), .out = view(8)};
  CHECK(two.hand_overs(allreduce) == 1);
  CHECK(two.hand_overs(
            {.collective = Collective::allreduce, .in = view(8), .out = view(8), .op = Op::premul_sum(2.0)}) == 1);
  CHECK(two.hand_overs({.collective = Collective::barrier}) == 1);
  CHECK(two.hand_overs({.collective = Collective::alltoallv,
                        .in = view(8),
                        .out = view(8),
                        .in_counts = counts,
                        .out_counts = counts}) == 1);
}

TEST_CASE("nccl launcher: messages that are posted together are one hand-over", "[nccl]") {
  Two two;
  two.on_both([&](int rank) {
    const GpuDevice device(driver(), rank);
    const GpuDevice::Scope scope(device);
    NcclChannel& channel = *two.sides[rank].channel;
    auto* const memory = static_cast<std::byte*>(two.sides[rank].memory->get());
    WaitContext wait(Deadline::after(test::kDeadline));
    const std::size_t before = two.sides[rank].launcher->hand_overs();
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < 4; ++i) {
      tickets.push_back(channel.post_send(1 - rank, i, ConstTensorView(memory + i * 64, 64, DType::uint8)));
      tickets.push_back(channel.post_recv(1 - rank, i, TensorView(memory + 2048 + i * 64, 64, DType::uint8)));
    }
    for (const Ticket ticket : tickets) channel.wait(ticket, wait);
    if (two.sides[rank].launcher->hand_overs() != before + 1) throw std::runtime_error("more than one hand-over");
  });
}

}  // namespace
}  // namespace col::nccl_backend

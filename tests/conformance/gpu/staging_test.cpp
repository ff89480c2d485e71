// Memory of GPUs in groups that move the host's, the host's in groups that move that of GPUs, and both in one call.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/calls.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Numbers = std::vector<std::int32_t>;

void all_calls(Group& group, int place) {
  reductions<std::int32_t>(group, place, 33);
  reductions<float>(group, place, 1000);
  reductions<col::bfloat16>(group, place, 5);
  moves(group, place, 1);
  moves(group, place, 777);
  if (group.size() > 1) ring_of_messages(group, place);
}

// The sums over the ranks before each, and what an operator of the user's and a bitwise one give.
void calls_without_nccl(Group& group, int place) {
  const int rank = group.rank(), n = group.size();
  constexpr std::size_t kCount = 300;
  const auto sides = [&](Collective collective, const Op& op) {
    return sides_of({.collective = collective, .size = n, .count = kCount, .ops = {op}}, rank, -5, number_of);
  };
  const auto check = [&](Collective collective, const Options& options) {
    check_call(group, place, {.collective = collective, .size = n, .count = kCount}, sides(collective, options.op),
               options);
  };
  check(Collective::exscan, {});
  check(Collective::scan, {});
  check(Collective::allreduce, {.op = ReduceOp::bor});
  check(Collective::allreduce, {.op = Op::user(add_as<std::int32_t>, true, "mine")});
  check(Collective::allreduce, {.deterministic = true});
  if (n > 1) check(Collective::allreduce, {.algorithm = "ring"});
  const auto scan = sides(Collective::scan, {}), bits = sides(Collective::allreduce, ReduceOp::bor);
  const GpuArray<std::int32_t> in(place, scan.in), out(place, kCount), later(place, kCount);
  Work first = group.iscan(in, out), second = group.iallreduce(in, later, {.op = ReduceOp::bor});
  second.wait();
  first.wait();
  expect_equal(out, scan.want, "iscan");
  expect_equal(later, bits.want, "asynchronous bitwise or");
}

// Every rank sends to the next, in several ways.
void messages(Group& group, int place) {
  const int rank = group.rank(), n = group.size(), next = (rank + 1) % n, last = (rank + n - 1) % n;
  const GpuArray<std::int32_t> own(place, numbers(rank, 50)), theirs(place, 50), tagged(place, 50);
  const Numbers want = numbers(last, 50);
  {
    Work send = group.isend(own, next), receive = group.irecv(theirs, last);
    receive.wait();
    send.wait();
    expect_equal(theirs, want, "irecv");
    expect(receive.source() == last, "whose it is");
  }
  {  // tested until they end, and tags taken in another order than they were sent in
    Work one = group.isend(own, next, {.tag = 1}), two = group.isend(own, next, {.tag = 2});
    group.recv(tagged, last, {.tag = 2});
    group.recv(theirs, last, {.tag = 1});
    expect_equal(tagged, want, "a tag");
    const Deadline deadline = Deadline::after(20s);
    while (!one.test() || !two.test()) expect(!deadline.expired(), "a send does not end");
  }
  {
    Work send = group.isend(own, next, {.tag = 7});
    const GpuArray<std::int32_t> from_any(place, 50);
    expect(group.recv_any(from_any, {.tag = 7}) == last, "who sent");
    send.wait();
    expect_equal(from_any, want, "recv_any");
  }
  {  // started by a test, and before a collective that comes after them
    const GpuArray<std::int32_t> again(place, 50), sum(place, Numbers(4, 1));
    Work receive = group.irecv(again, last), send = group.isend(own, next);
    group.allreduce(sum);
    expect_equal(sum, Numbers(4, n), "a collective between a message's start and its end");
    const Deadline deadline = Deadline::after(20s);
    while (!receive.test() || !send.test()) expect(!deadline.expired(), "a message does not end");
    expect_equal(again, want, "a tested irecv");
  }
  group.send(own, rank);
  group.recv(theirs, rank);
  expect_equal(theirs, numbers(rank, 50), "to oneself");
}

void objects_and_children(Group& group) {
  const int rank = group.rank(), n = group.size();
  const auto names = group.allgather_object(fmt::format("rank {}", rank));
  expect(static_cast<int>(names.size()) == n && names[static_cast<std::size_t>(n - 1)] == fmt::format("rank {}", n - 1),
         "objects of all");
  std::string word = rank == 0 ? "from the root" : "";
  group.broadcast_object(word);
  expect(word == "from the root", "an object of the root's");
  Group half = group.split(rank % 2);
  expect(half.size() == (n + 1 - rank % 2) / 2, "ranks of equal color");
  expect(half.backend() == (half.size() == 1 && group.backend() != "nccl" ? "self" : group.backend()), "its backend");
  expect(group.dup().size() == n, "all of them again");
  const std::vector<int> pair{n - 1, 0};
  Group both = group.subgroup(pair, "both");
  expect(static_cast<bool>(both) == (rank == 0 || rank == n - 1), "who is in it");
}

// The place of a rank's memory: some of it here, some there.
int place_of(int rank, int gpu) {
  return rank % 2 == 0 ? gpu : kHost;
}

GPU_TEST_CASE("gpu staging: groups over the host take memory of GPUs, also where ranks share one", "[gpu]") {
  for (const Backend backend : {Backend::shm, Backend::gloo}) {
    INFO(to_string(backend));
    const int n = backend == Backend::gloo ? 2 : 4;
    check_good(run_gpu_ranks({n, backend, [](int) { return 0; }}, all_calls));
    check_good(run_gpu_ranks({n, backend}, [](Group& group, int gpu) {
      calls_without_nccl(group, gpu);
      messages(group, gpu);
      objects_and_children(group);
    }));
  }
}

GPU_TEST_CASE("gpu staging: ranks give memory of either kind in one call", "[gpu]") {
  for (const Backend backend : {Backend::shm, Backend::gloo, Backend::nccl}) {
    INFO(to_string(backend));
    const int n = backend == Backend::gloo ? 2 : 4;
    check_good(run_gpu_ranks({n, backend}, [](Group& group, int gpu) {
      const int place = place_of(group.rank(), gpu);
      all_calls(group, place);
      calls_without_nccl(group, place);
      messages(group, place);
      // The two sides of one call, too.
      const GpuArray<float> in(kHost, std::size_t{100}, 1.0f), out(gpu, std::size_t{100});
      group.allreduce(in, out);
      expect_equal(out, std::vector<float>(100, static_cast<float>(group.size())), "from the host to the GPU");
    }));
  }
}

GPU_TEST_CASE("gpu staging: what NCCL cannot do runs over the host in a group of GPUs", "[gpu]") {
  for (const int n : {1, 2, 4}) {
    check_good(run_gpu_ranks(n, [](Group& group, int gpu) {
      calls_without_nccl(group, gpu);
      if (group.size() == 1) return;
      messages(group, gpu);
      objects_and_children(group);
      expect_error("give those", [&] { (void)group.recv_any(GpuArray<float>(gpu, std::size_t{1})); });
    }));
  }
}

GPU_TEST_CASE("gpu staging: a world of one copies on GPUs", "[gpu]") {
  for (const Backend backend : {Backend::automatic, Backend::shm, Backend::nccl}) {
    INFO(to_string(backend));
    check_good(run_gpu_ranks({1, backend}, [&](Group& group, int gpu) {
      expect(group.backend() == (backend == Backend::shm ? "self" : "nccl"), "its backend");
      all_calls(group, gpu);
      all_calls(group, kHost);
      calls_without_nccl(group, gpu);
      group.send(GpuArray<float>(gpu, std::size_t{3}, 2.0f), 0);
      const GpuArray<float> received(gpu, std::size_t{3});
      group.recv(received, 0);
      expect_equal(received, std::vector<float>(3, 2.0f), "to oneself");
    }));
  }
}

GPU_TEST_CASE("gpu staging: a group that names no backend gets nccl when all ranks have a GPU of their own", "[gpu]") {
  const auto backend_is = [](const std::string& wanted) {
    return [wanted](Group& group, int gpu) {
      expect(group.backend() == wanted, fmt::format("backend {}", group.backend()));
      const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
      group.allreduce(data);
      expect_equal(data, std::vector<float>(8, static_cast<float>(group.size())), "the sum");
    };
  };
  check_good(run_gpu_ranks({4, Backend::automatic}, backend_is("nccl")));
  need_own_gpus(2);
  check_good(run_gpu_ranks({4, Backend::automatic, [](int rank) { return rank % 2; }}, backend_is("shm")));
  // One that has not made its GPU current yet.
  check_good(run_ranks(2, [&](int rank, Context& context) {
    const nccl_backend::GpuDevice device(cuda(), rank);
    std::optional<nccl_backend::GpuDevice::Scope> scope;
    if (rank == 0) scope.emplace(device);
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2});
    backend_is("shm")(group, rank);
  }));
}

GPU_TEST_CASE("gpu staging: memory that is not where its view says is refused, and the group goes on", "[gpu]") {
  check_good(run_gpu_ranks({2, Backend::shm}, [](Group& group, int gpu) {
    std::vector<float> host(8, 1.0f);
    const TensorView mislabelled(host.data(), host.size(), DType::float32, {Device::Type::cuda, gpu_of(gpu)});
    const TensorView nowhere(host.data(), host.size(), DType::float32, {Device::Type::cuda, 99});
    expect_error("no memory of a GPU", [&] { group.allreduce(mislabelled); });
    expect_error("no memory of a GPU", [&] { group.send(mislabelled, 1 - gpu); });
    const GpuArray<float> there(gpu, std::size_t{8});
    const TensorView view = there;
    const TensorView too_long(view.data, std::size_t{1} << 40, view.dtype, view.device);
    expect_error("or not to its end", [&] { group.allreduce(too_long); });
    expect_error("GPU 99 is not there", [&] { group.allreduce(nowhere); });
    group.allreduce(host);
    expect(host == std::vector<float>(8, 2.0f), "the sum");
  }));
}

GPU_TEST_CASE("gpu staging: a rank that never calls is named by the timeout", "[gpu]") {
  Company company;
  check_good(run_gpu_ranks({2, Backend::shm}, [&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    if (group.rank() == 1) return company.stay();
    company.call_in_vain([&] { group.iallreduce(data, data, {.timeout = 500ms}).wait(); });
  }));
}

GPU_TEST_CASE("gpu staging: calls that differ are a mismatch, wherever their memory is", "[gpu]") {
  for (const Backend backend : {Backend::shm, Backend::nccl}) {
    // NCCL notices no such difference: a rank whose part of the work ends all the same ends well.
    std::optional<Setting> check;
    if (backend == Backend::nccl) check.emplace("COL_CHECK", "strict");
    const auto outcomes = run_gpu_ranks({3, backend}, [](Group& group, int gpu) {
      const GpuArray<float> data(group.rank() == 1 ? kHost : gpu, std::size_t{group.rank() == 1 ? 9U : 8U}, 1.0f);
      group.allreduce(data);
    });
    check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1});
  }
}

GPU_TEST_CASE("gpu: alloc gives memory of the GPU that collectives can use, and that outlives its group", "[gpu]") {
  for (const int n : {1, 2, 4}) {
    check_good(run_gpu_ranks(n, [](Group& group, int gpu) {
      expect(group.device() == Device{Device::Type::cuda, gpu_of(gpu)}, "the group's device");
      void* const memory = col::alloc(1000, group);
      const TensorView data(memory, 250, DType::int32, group.device());
      const GpuArray<std::int32_t> copy(gpu, Numbers(250, 7));
      group.allreduce(data, copy);
      expect_equal(copy, Numbers(250, 0), "it is zeroed");
      group.broadcast(data);
      col::free(memory);
      void* const kept = col::alloc(0, group);
      expect(kept != nullptr, "no bytes give a pointer, too");
      const std::string error =
          error_of([&] {
            const std::vector<float, Allocator<float>> container(8, 0.0f, Allocator<float>(group));
          }).what();
      expect(has(error, "lives in host memory"), "a container on a GPU");
      group.barrier();
      Context::current().destroy_group("g");
      col::free(kept);
    }));
  }
}

GPU_TEST_CASE("gpu: memory from alloc serves like any other, at once and at any place on each rank", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const auto rank = static_cast<std::size_t>(group.rank());
    for (int round = 0; round < 3; ++round) {
      void* const memory = col::alloc(1000, group);
      const TensorView data(memory, 250, DType::int32, group.device());
      const GpuArray<std::int32_t> ones(gpu, Numbers(100, 1)), sum(gpu, Numbers(100, -1));
      // Both sides in it, the two ranks at different places; then one side of one rank.
      group.broadcast(data.slice(100 * rank, 100));
      group.allreduce(data.slice(100 * rank, 50), data.slice(100 * rank + 50, 50));
      group.allreduce(ones, rank == 0 ? TensorView(sum) : data.slice(0, 100));
      if (rank == 0) expect_equal(sum, Numbers(100, 2), "the sum");
      col::free(memory);
      void* const unused = col::alloc(100, group);
      col::free(unused);
    }
  }));
}

GPU_TEST_CASE("gpu staging: elements that lie where their type does not belong are copied", "[gpu]") {
  check_good(run_gpu_ranks({2, Backend::nccl}, [](Group& group, int gpu) {
    const std::vector<float> ones(7, 1.0f), twos(7, 2.0f);
    std::vector<std::uint8_t> bytes(40, 0xa5), wanted = bytes;
    std::memcpy(bytes.data() + 1, ones.data(), 28);
    std::memcpy(wanted.data() + 1, twos.data(), 28);
    const GpuArray<std::uint8_t> memory(gpu, bytes);
    TensorView odd = memory.part(1, 28);
    odd.dtype = DType::float32;
    odd.count = 7;
    group.allreduce(odd);
    expect_equal(memory, wanted, "the sum in place, and what is beside it");
    if (group.rank() == 0)
      group.send(odd, 1);
    else
      group.recv(odd, 0);
    expect_equal(memory, wanted, "a message");
  }));
}

GPU_TEST_CASE("gpu staging: what runs over the host goes on while NCCL waits for ranks that wait for it", "[gpu]") {
  // More than transports take without the peer's help. Each group is new: NCCL waits for the peers at its first call.
  constexpr std::size_t kMuch = 100'000;
  for (const bool blocking : {true, false}) {
    INFO(blocking);
    check_good(run_gpu_ranks({2, Backend::nccl}, [&](Group& group, int gpu) {
      const GpuArray<std::int32_t> in(gpu, kMuch, 1), out(gpu, kMuch), sum(gpu, std::size_t{4}, 1);
      const auto add = [&] {
        if (blocking)
          group.allreduce(sum);
        else
          group.iallreduce(sum, sum).wait();
      };
      Work scan = group.iscan(in, out);
      if (group.rank() == 1) scan.wait();
      add();
      scan.wait();
      expect_equal(out, Numbers(kMuch, group.rank() + 1), "the scan");
      expect_equal(sum, Numbers(4, 2), "the sum");
    }));
    check_good(run_gpu_ranks({2, Backend::nccl}, [&](Group& group, int gpu) {
      const GpuArray<std::int32_t> data(gpu, kMuch, 7 * (1 - group.rank())), sum(gpu, std::size_t{4}, 1);
      Work message;
      if (group.rank() == 0)
        message = group.isend(data, 1, {.tag = 5});
      else
        group.recv(data, 0, {.tag = 5});
      if (blocking)
        group.allreduce(sum);
      else
        group.iallreduce(sum, sum).wait();
      message.wait();
      expect_equal(data, Numbers(kMuch, 7), "the message");
      expect_equal(sum, Numbers(4, 2), "the sum");
    }));
  }
}

}  // namespace
}  // namespace col::test

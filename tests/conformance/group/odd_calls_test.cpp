// Calls that are legal but unusual, and user code that misbehaves: none may hang, crash or pass for a success.
#include <chrono>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("COL_CHECK=strict: what is in flight moves on while calls are compared", "[group]") {
  const Setting strict("COL_CHECK", "strict");
  threads_on_each_backend(2, [&](Group& group) {
    const int rank = group.rank();
    std::vector<float> big(1 << 20, 1.0F), other(1 << 20);
    if (rank == 0) {  // the peer comes to the barrier only after it has received
      Work sent = group.isend(big, 1);
      group.barrier();
      sent.wait();
    } else {
      group.recv(other, 0);
      group.barrier();
    }
    std::vector<float> a(1000, 1.0F), b(1000, 1.0F), sum_a(1000), sum_b(1000);
    if (rank == 0) {
      Work first = group.iallreduce(a, sum_a, {.algorithm = "ring"});
      Work second = group.iallreduce(b, sum_b, {.algorithm = "ring"});
      second.wait();
      first.wait();
    } else {
      group.iallreduce(a, sum_a, {.algorithm = "ring"}).wait();
      group.iallreduce(b, sum_b, {.algorithm = "ring"}).wait();
    }
    expect(sum_a.back() == 2 && sum_b.back() == 2);
  });
}

TEST_CASE("irecv from oneself that nothing is sent for ends at its deadline", "[group]") {
  for (const int size : {1, 2}) {
    check_good(run_threads(size, [&](int rank, Context& context) {
      Group group = context.init_group({.name = "g", .rank = rank, .world_size = size});
      if (rank > 0) return;
      std::vector<float> data(4);
      Work work = group.irecv(data, 0, {.timeout = 300ms});
      expect(!work.wait_for(150ms));
      expect_error(ErrorCode::timeout, "", [&] { work.wait(); });
    }));
  }
}

TEST_CASE("scatter: what a non-root passes as input is not looked at, nor its type", "[group]") {
  threads_on_each_backend(3, [&](Group& group) {
    const int rank = group.rank();
    const std::vector<float> all{1, 2, 3, 4, 5, 6};
    const std::vector<double> ignored(6, 9.0);
    std::vector<float> mine(2);
    if (rank == 0)
      group.scatter(all, mine);
    else
      group.scatter(ignored, mine);
    expect(mine[1] == static_cast<float>(2 * rank + 2));
  });
}

TEST_CASE("a user's reduction that throws breaks the group, whoever runs it", "[group]") {
  for (const bool thread : {false, true}) {
    const Setting progress("COL_PROGRESS", thread ? "thread" : "calls");
    INFO((thread ? "thread" : "calls"));
    threads_on_each_backend(2, [](Group& group) {
      const Op op = Op::user(
          [](const void*, const void*, void*, std::size_t, DType) { throw std::runtime_error("no such sum"); }, true);
      std::vector<float> data(8, 1.0F), out(8);
      // Also when the i-form finds everything there already and runs it, or the peer has failed first.
      Work work;
      expect_error(ErrorCode::internal, "", [&] {
        work = group.iallreduce(data, out, {.op = op});
        work.wait();
        work.wait();
      });
      expect_error(ErrorCode::aborted, "", [&] { group.barrier(); });
    });
  }
}

TEST_CASE("a builtin operator is none that was the user's before, on whichever buffer", "[group]") {
  threads_on_each_backend(2, [&](Group& group) {
    const int rank = group.rank();
    std::vector<float> kept(8, 1.0F), other(8, 2.0F);
    group.allreduce(kept, {.op = Op::user(add_as<float>, true, "addition")});
    expect(kept == std::vector<float>(8, 2.0F));
    // One rank calls with the same buffer again, the other with another one.
    std::vector<float>& next = rank == 0 ? kept : other;
    group.allreduce(next);
    group.allreduce(next);
    expect(next == std::vector<float>(8, 8.0F));
  });
}

TEST_CASE("the longest of durations is a long time, not the past", "[group]") {
  threads_on_each_backend(2, [&](Group& group) {
    std::vector<float> data(8, 1.0F), out(8);
    Work work = group.iallreduce(data, out, {.timeout = Duration::max()});
    expect(work.wait_for(Duration::max()));
    group.allreduce(data, {.timeout = Duration::max()});
    expect(data[0] == 2 && out[0] == 2);
  });
}

TEST_CASE("subgroup: a name that one rank has taken already is refused on all at once", "[group]") {
  threads_on_each_backend(3, [&](Group& group, Context& context) {
    const int rank = group.rank();
    if (rank == 2) context.init_group({.name = "pair", .rank = 0, .world_size = 1});
    const std::vector<int> members{1, 2};
    expect_error(ErrorCode::already_initialized, "", [&] { group.subgroup(members, "pair"); });
    group.barrier();
  });
}

TEST_CASE("messages: wrong peers and overlapping buffers are refused, and the group goes on", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    const int rank = group.rank();
    std::vector<int> data(8, rank);
    const TensorView all(data);
    const TensorView low = all.slice(0, 5), high = all.slice(4, 4), apart = all.slice(5, 3);
    const int peer = 1 - rank;
    const auto refused = [](auto call) { expect_error(ErrorCode::invalid_argument, "", call); };
    // -1 is what the backends call "any"; to a user it is no rank.
    for (const int wrong : {-1, -2, 2}) {
      refused([&] { group.send(low, wrong); });
      refused([&] { std::ignore = group.isend(low, wrong); });
      refused([&] { group.recv(low, wrong); });
      refused([&] { std::ignore = group.irecv(low, wrong); });
      refused([&] { group.sendrecv(low, wrong, apart, peer); });
      refused([&] { group.sendrecv(low, peer, apart, wrong); });
      refused([&] { group.batch(std::vector{Message::send(low, wrong)}); });
      refused([&] { group.batch(std::vector{Message::recv(low, wrong)}); });
    }
    refused([&] { group.sendrecv(low, peer, high, peer); });
    refused([&] { group.batch(std::vector{Message::recv(low, peer), Message::recv(high, peer)}); });
    refused([&] { std::ignore = group.ibatch(std::vector{Message::send(high, peer), Message::recv(low, peer)}); });
    // Two that are sent may be the same, and what is empty is nowhere.
    const TensorView two = all.slice(0, 2), others = all.slice(6, 2);
    group.batch(std::vector{Message::send(two, peer), Message::send(two, peer), Message::recv(others, peer),
                            Message::recv(all.slice(4, 2), peer), Message::recv(all.slice(1, 0), peer),
                            Message::send(all.slice(7, 0), peer)});
    expect(data == std::vector{rank, rank, rank, rank, peer, peer, peer, peer});
  });
}

TEST_CASE("odd calls: a buffer that is called a GPU's is refused where it is none, and the group goes on", "[group]") {
  for (const int ranks : {1, 2}) {
    check_good(run_threads(ranks, [&](int rank, Context& context) {
      Group group = context.init_group({.name = "g", .rank = rank, .world_size = ranks});
      std::vector<float> data(8, 1.0f);
      const TensorView on_gpu(data.data(), data.size(), DType::float32, {Device::Type::cuda, 0});
      for (const bool message : {false, true}) {
        const Error error = error_of([&] { message ? group.send(on_gpu, 0) : group.allreduce(on_gpu); });
        // Without a GPU: why there is none. With one: that the memory is not there.
        expect(error.code() == ErrorCode::unavailable || error.code() == ErrorCode::invalid_argument, error.what());
      }
      group.allreduce(data);
      expect(data == std::vector<float>(8, static_cast<float>(ranks)), "the sum");
    }));
  }
}

}  // namespace
}  // namespace col::test

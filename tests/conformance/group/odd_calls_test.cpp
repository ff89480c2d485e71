// Calls that are legal but unusual, and user code that misbehaves: none may hang, crash or pass for a success.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using namespace std::chrono_literals;
using col::test::expect;
using col::test::Outcome;
using col::test::run_threads;
using col::test::Setting;
using col::test::usable_backends;

col::ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const col::Error& error) {
    return error.code();
  }
  throw std::runtime_error("nothing was thrown");
}

col::Group join(col::Context& context, int rank, int size, const std::string& backend) {
  return context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = backend});
}

void check_good(const std::vector<Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

}  // namespace

TEST_CASE("COL_CHECK=strict: what is in flight moves on while calls are compared", "[group]") {
  const Setting strict("COL_CHECK", "strict");
  for (const auto& backend : usable_backends()) {
    check_good(run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, 2, backend);
      std::vector<float> big(1 << 20, 1.0F), other(1 << 20);
      if (rank == 0) {  // the peer comes to the barrier only after it has received
        col::Work sent = group.isend(big, 1);
        group.barrier();
        sent.wait();
      } else {
        group.recv(other, 0);
        group.barrier();
      }
      std::vector<float> a(1000, 1.0F), b(1000, 1.0F), sum_a(1000), sum_b(1000);
      if (rank == 0) {
        col::Work first = group.iallreduce(a, sum_a, {.algorithm = "ring"});
        col::Work second = group.iallreduce(b, sum_b, {.algorithm = "ring"});
        second.wait();
        first.wait();
      } else {
        group.iallreduce(a, sum_a, {.algorithm = "ring"}).wait();
        group.iallreduce(b, sum_b, {.algorithm = "ring"}).wait();
      }
      expect(sum_a.back() == 2 && sum_b.back() == 2);
    }));
  }
}

TEST_CASE("irecv from oneself that nothing is sent for ends at its deadline", "[group]") {
  for (const int size : {1, 2}) {
    check_good(run_threads(size, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = size});
      if (rank > 0) return;
      std::vector<float> data(4);
      col::Work work = group.irecv(data, 0, {.timeout = 300ms});
      expect(!work.wait_for(150ms));
      expect(code_of([&] { work.wait(); }) == col::ErrorCode::timeout);
    }));
  }
}

TEST_CASE("scatter: what a non-root passes as input is not looked at, nor its type", "[group]") {
  for (const auto& backend : usable_backends()) {
    check_good(run_threads(3, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, 3, backend);
      const std::vector<float> all{1, 2, 3, 4, 5, 6};
      const std::vector<double> ignored(6, 9.0);
      std::vector<float> mine(2);
      if (rank == 0)
        group.scatter(all, mine);
      else
        group.scatter(ignored, mine);
      expect(mine[1] == static_cast<float>(2 * rank + 2));
    }));
  }
}

TEST_CASE("a user's reduction that throws breaks the group, whoever runs it", "[group]") {
  for (const bool thread : {false, true}) {
    const Setting progress("COL_PROGRESS", thread ? "thread" : "calls");
    for (const auto& backend : usable_backends()) {
      const auto outcomes = run_threads(2, [&](int rank, col::Context& context) {
        col::Group group = join(context, rank, 2, backend);
        const col::Op op = col::Op::user(
            [](const void*, const void*, void*, std::size_t, col::DType) { throw std::runtime_error("no such sum"); },
            true);
        std::vector<float> data(8, 1.0F), out(8);
        // Also when the i-form finds everything there already and runs it, or the peer has failed first.
        col::Work work;
        expect(code_of([&] {
                 work = group.iallreduce(data, out, {.op = op});
                 work.wait();
                 work.wait();
               }) == col::ErrorCode::internal);
        expect(code_of([&] { group.barrier(); }) == col::ErrorCode::aborted);
      });
      INFO(backend << (thread ? ", thread" : ""));
      check_good(outcomes);
    }
  }
}

TEST_CASE("a builtin operator is none that was the user's before, on whichever buffer", "[group]") {
  for (const auto& backend : usable_backends()) {
    INFO(backend);
    check_good(run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, 2, backend);
      std::vector<float> kept(8, 1.0F), other(8, 2.0F);
      const col::Op add = col::Op::user(
          [](const void* left, const void* right, void* result, std::size_t count, col::DType) {
            const auto *one = static_cast<const float*>(left), *two = static_cast<const float*>(right);
            for (std::size_t i = 0; i < count; ++i) static_cast<float*>(result)[i] = one[i] + two[i];
          },
          true, "addition");
      group.allreduce(kept, {.op = add});
      expect(kept == std::vector<float>(8, 2.0F));
      // One rank calls with the same buffer again, the other with another one.
      std::vector<float>& next = rank == 0 ? kept : other;
      group.allreduce(next);
      group.allreduce(next);
      expect(next == std::vector<float>(8, 8.0F));
    }));
  }
}

TEST_CASE("the longest of durations is a long time, not the past", "[group]") {
  for (const auto& backend : usable_backends()) {
    check_good(run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, 2, backend);
      std::vector<float> data(8, 1.0F), out(8);
      col::Work work = group.iallreduce(data, out, {.timeout = col::Duration::max()});
      expect(work.wait_for(col::Duration::max()));
      group.allreduce(data, {.timeout = col::Duration::max()});
      expect(data[0] == 2 && out[0] == 2);
    }));
  }
}

TEST_CASE("subgroup: a name that one rank has taken already is refused on all at once", "[group]") {
  for (const auto& backend : usable_backends()) {
    check_good(run_threads(3, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, 3, backend);
      if (rank == 2) context.init_group({.name = "pair", .rank = 0, .world_size = 1});
      const std::vector<int> members{1, 2};
      expect(code_of([&] { group.subgroup(members, "pair"); }) == col::ErrorCode::already_initialized);
      group.barrier();
    }));
  }
}

TEST_CASE("messages: wrong peers and overlapping buffers are refused, and the group goes on", "[group]") {
  for (const auto& backend : usable_backends()) {
    check_good(run_threads(2, [&](int rank, col::Context& context) {
      using col::Message;
      col::Group group = join(context, rank, 2, backend);
      std::vector<int> data(8, rank);
      const col::TensorView all(data);
      const col::TensorView low = all.slice(0, 5), high = all.slice(4, 4), apart = all.slice(5, 3);
      const int peer = 1 - rank;
      const auto refused = [&](auto call) { expect(code_of(call) == col::ErrorCode::invalid_argument); };
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
      const col::TensorView two = all.slice(0, 2), others = all.slice(6, 2);
      group.batch(std::vector{Message::send(two, peer), Message::send(two, peer), Message::recv(others, peer),
                              Message::recv(all.slice(4, 2), peer), Message::recv(all.slice(1, 0), peer),
                              Message::send(all.slice(7, 0), peer)});
      expect(data == std::vector{rank, rank, rank, rank, peer, peer, peer, peer});
    }));
  }
}

TEST_CASE("odd calls: a buffer that is called a GPU's is refused where it is none, and the group goes on", "[group]") {
  for (const char* backend : {"self", "shm"}) {
    const int ranks = std::string(backend) == "self" ? 1 : 2;
    const auto outcomes = col::test::run_threads(ranks, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = ranks});
      std::vector<float> data(8, 1.0f);
      const col::TensorView on_gpu(data.data(), data.size(), col::DType::float32, {col::Device::Type::cuda, 0});
      for (const bool message : {false, true}) {
        try {
          if (message)
            group.send(on_gpu, 0);
          else
            group.allreduce(on_gpu);
          col::test::expect(false, "host memory was taken for a GPU's");
        } catch (const col::Error& error) {
          // Without a GPU: why there is none. With one: that the memory is not there.
          col::test::expect(
              error.code() == col::ErrorCode::unavailable || error.code() == col::ErrorCode::invalid_argument,
              error.what());
        }
      }
      group.allreduce(data);
      col::test::expect(data == std::vector<float>(8, static_cast<float>(ranks)), "the sum");
    });
    INFO(col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

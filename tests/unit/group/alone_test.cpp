// A world of one: every call works, and needs no backend.
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "support/catch.hpp"

namespace {

std::vector<int> sequence(std::size_t n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 1);
  return v;
}

struct Alone {
  col::Context context{col::ContextSpec{}};
  col::Context::Scope scope{context};
  col::Group group = col::init();
};

}  // namespace

TEST_CASE("a world of one has rank 0 of 1 and no backend", "[group]") {
  Alone alone;
  CHECK(alone.group.rank() == 0);
  CHECK(alone.group.size() == 1);
  CHECK(alone.group.name() == "default");
  CHECK(alone.group.backend() == "self");
  CHECK(col::is_group_initialized());
  CHECK(col::get_rank() == 0);
  CHECK(col::get_collective_group_size() == 1);
}

TEST_CASE("a world of one that asks for GPUs is told that there are none; others need no backend", "[group]") {
  col::Context context{col::ContextSpec{}};
  CHECK(context.init_group({.name = "host", .backend = col::Backend::gloo}).backend() == "self");
  if (col::nccl_available()) {
    CHECK(context.init_group({.name = "gpu", .backend = col::Backend::nccl}).backend() == "nccl");
    return;
  }
  try {
    context.init_group({.name = "gpu", .backend = col::Backend::nccl});
    FAIL("made a group over nccl");
  } catch (const col::Error& error) {
    CHECK(error.code() == col::ErrorCode::unavailable);
    CHECK(error.group() == "gpu");
    CHECK(error.message().find("nccl") != std::string::npos);
  }
}

TEST_CASE("a world of one copies the input of every collective to its output", "[group]") {
  Alone alone;
  const std::vector<int> in = sequence(5);
  const std::array<std::size_t, 1> counts{5};
  const auto result = [&](auto call) {
    std::vector<int> out(5, -1);
    call(out);
    return out;
  };
  CHECK(result([&](auto& out) { alone.group.allreduce(in, out); }) == in);
  CHECK(result([&](auto& out) { alone.group.allreduce(in, out, {.op = col::ReduceOp::avg}); }) == in);
  CHECK(result([&](auto& out) { alone.group.reduce(in, out, {.op = col::ReduceOp::max}); }) == in);
  CHECK(result([&](auto& out) { alone.group.allgather(in, out); }) == in);
  CHECK(result([&](auto& out) { alone.group.allgatherv(in, out, counts); }) == in);
  CHECK(result([&](auto& out) { alone.group.gather(in, out); }) == in);
  CHECK(result([&](auto& out) { alone.group.scatter(in, out); }) == in);
  CHECK(result([&](auto& out) { alone.group.alltoall(in, out); }) == in);
  CHECK(result([&](auto& out) { alone.group.alltoallv(in, counts, out, counts); }) == in);
  std::vector<int> own = in;
  alone.group.broadcast(own);
  alone.group.barrier();
  CHECK(own == in);
}

TEST_CASE("a world of one still scales a premul_sum", "[group]") {
  Alone alone;
  std::vector<float> data{1, 2, 3};
  alone.group.allreduce(data, {.op = col::Op::premul_sum(0.5)});
  CHECK(data == std::vector<float>{0.5f, 1.0f, 1.5f});
}

TEST_CASE("messages to oneself arrive in order, by tag", "[group]") {
  Alone alone;
  const std::vector<int> first{1, 2}, second{3, 4}, other{5, 6};
  col::send(first, 0);
  col::send(second, 0);
  col::send(other, 0, {.tag = 9});
  std::vector<int> got(2);
  col::recv(got, 0, {.tag = 9});
  CHECK(got == other);
  col::recv(got, 0);
  CHECK(got == first);
  alone.group.sendrecv(first, 0, got, 0);
  CHECK(got == second);
}

TEST_CASE("a recv from oneself that can never be answered is refused, and a wrong count is a mismatch", "[group]") {
  Alone alone;
  std::vector<int> got(2);
  const auto code = [&] {
    try {
      col::recv(got, 0);
    } catch (const col::Error& error) {
      return error.code();
    }
    return col::ErrorCode::internal;
  };
  CHECK(code() == col::ErrorCode::invalid_argument);
  col::send(sequence(3), 0);
  CHECK(code() == col::ErrorCode::mismatch);
}

TEST_CASE("the list form of allgather checks its list", "[group]") {
  Alone alone;
  const std::vector<int> in = sequence(3);
  std::vector<int> out(3), other(3), small(2);
  col::allgather(std::array<col::TensorView, 1>{out}, in);
  CHECK(out == in);
  CHECK_THROWS_AS(col::allgather(std::array<col::TensorView, 2>{out, other}, in), col::Error);
  CHECK_THROWS_AS(col::allgather(std::array<col::TensorView, 1>{small}, in), col::Error);
  std::vector<std::size_t> counts{static_cast<std::size_t>(-3)};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  counts.push_back(std::size_t{1} << 45);  // more than there is: the sanitizers end the process for asking
#endif
  for (const std::size_t count : counts) {
    const col::TensorView absurd(out.data(), count, col::DType::int32);
    CHECK_THROWS_AS(col::allgather(std::array{absurd}, absurd), col::Error);
    CHECK_THROWS_AS(col::send(absurd, 0), col::Error);
  }
}

TEST_CASE("a method that is given another group's name refuses", "[group]") {
  Alone alone;
  std::vector<float> data(2);
  alone.group.allreduce(data, {.group = "default"});
  CHECK_THROWS_AS(alone.group.allreduce(data, {.group = "other"}), col::Error);
  CHECK_THROWS_AS(alone.group.send(data, 0, {.group = "other"}), col::Error);
}

TEST_CASE("init twice is the same group, init_collective_group twice is an error", "[group]") {
  Alone alone;
  CHECK(col::init().name() == "default");
  try {
    col::init_collective_group(1, 0);
    FAIL("no error");
  } catch (const col::Error& error) {
    CHECK(error.code() == col::ErrorCode::already_initialized);
  }
  col::destroy_collective_group();
  CHECK_FALSE(col::is_group_initialized());
  CHECK(col::get_rank() == -1);
  CHECK(col::get_collective_group_size() == -1);
  col::destroy_collective_group("no such group");  // a warning, as in Ray
  col::init_collective_group(1, 0, col::Backend::automatic, "again");
  CHECK(col::get_group("again").size() == 1);
}

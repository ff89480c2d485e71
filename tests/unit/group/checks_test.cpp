#include "group/call/checks.hpp"

#include <sys/mman.h>

#include <array>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using col::Collective;
using col::ErrorCode;
using col::Request;

namespace {

const col::group::Shape kShape{"g", 1, 3};  // rank 1 of 3

// "ok", or the message of the invalid_argument.
std::string verdict(const Request& request) {
  try {
    col::group::check(request, kShape);
  } catch (const col::Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.group() == "g");
    return error.message();
  }
  return "ok";
}

Request make(Collective collective, col::ConstTensorView in, col::TensorView out, int root = 0) {
  Request request;
  request.collective = collective;
  request.in = in;
  request.out = out;
  request.root = root;
  return request;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

struct Buffers {
  std::vector<float> three = std::vector<float>(3), six = std::vector<float>(6), nine = std::vector<float>(9);
  std::vector<float> other_three = std::vector<float>(3), other_six = std::vector<float>(6);
  std::vector<int> ints = std::vector<int>(3);
};

}  // namespace

TEST_CASE("checks: right calls pass", "[group]") {
  Buffers b;
  CHECK(verdict(make(Collective::allreduce, b.three, b.other_three)) == "ok");
  CHECK(verdict(make(Collective::allreduce, b.three, b.three)) == "ok");
  CHECK(verdict(make(Collective::allgather, b.three, b.nine)) == "ok");
  CHECK(verdict(make(Collective::alltoall, b.six, b.other_six)) == "ok");
  CHECK(verdict(make(Collective::barrier, {}, {})) == "ok");
  const col::TensorView all(b.nine);
  CHECK(verdict(make(Collective::allgather, all.slice(3, 3), all)) == "ok");  // in place: own block
}

TEST_CASE("checks: a root outside the group is refused", "[group]") {
  Buffers b;
  CHECK(says(verdict(make(Collective::reduce, b.three, b.other_three, 3)), "root 3 is not in the group"));
  CHECK(says(verdict(make(Collective::broadcast, {}, b.three, -1)), "its ranks are 0 to 2"));
}

TEST_CASE("checks: what a rooted call does not use elsewhere is not looked at", "[group]") {
  Buffers b;
  CHECK(verdict(make(Collective::reduce, b.three, {}, 0)) == "ok");
  CHECK(verdict(make(Collective::gather, b.three, {}, 0)) == "ok");
  CHECK(verdict(make(Collective::scatter, {}, b.three, 0)) == "ok");
  CHECK(says(verdict(make(Collective::reduce, b.three, b.six, 1)), "must have 3"));
  CHECK(says(verdict(make(Collective::gather, b.three, b.six, 1)), "must have 9"));
  CHECK(says(verdict(make(Collective::scatter, b.six, b.three, 1)), "must have 9"));
}

TEST_CASE("checks: counts that do not fit are refused with both numbers", "[group]") {
  Buffers b;
  CHECK(says(verdict(make(Collective::allreduce, b.three, b.six)), "has 6 elements, but must have 3"));
  CHECK(says(verdict(make(Collective::allgather, b.three, b.six)), "has 6 elements, but must have 9"));
  std::vector<float> four(4), other_four(4);
  CHECK(says(verdict(make(Collective::alltoall, four, other_four)), "use alltoallv"));
  const std::array<std::size_t, 2> two{1, 2};
  const std::array<std::size_t, 3> fits{1, 3, 2}, wrong{3, 1, 2};
  Request request = make(Collective::allgatherv, b.three, b.six);
  request.out_counts = two;
  CHECK(says(verdict(request), "2 entries, but the group has 3 ranks"));
  const std::array<std::size_t, 3> wraps{4, 3, static_cast<std::size_t>(-1)};
  request.out_counts = wraps;
  CHECK(says(verdict(request), "negative count"));
  request.out_counts = wrong;
  CHECK(says(verdict(request), "must have 1 (counts[own rank])"));
  request.out_counts = fits;
  CHECK(verdict(request) == "ok");
}

TEST_CASE("checks: dtypes, null pointers and absurd counts are refused", "[group]") {
  Buffers b;
  CHECK(says(verdict(make(Collective::allreduce, b.three, b.ints)), "does not convert"));
  CHECK(says(verdict(make(Collective::allreduce, {nullptr, 3, col::DType::float32}, b.three)), "null pointer"));
  CHECK(says(verdict(make(Collective::allreduce, {b.three.data(), 3, static_cast<col::DType>(99)}, b.three)),
             "unknown dtype"));
  const auto huge = static_cast<std::size_t>(-3);
  CHECK(says(verdict(make(Collective::broadcast, {}, {b.three.data(), huge, col::DType::float32})), "negative"));
}

TEST_CASE("checks: an operator must be defined on the dtype", "[group]") {
  Buffers b;
  Request request = make(Collective::allreduce, b.three, b.three);
  request.op = col::ReduceOp::bxor;
  CHECK(says(verdict(request), "bitwise operators take integer types only"));
  request = make(Collective::allreduce, b.ints, b.ints);
  request.op = col::Op::premul_sum(0.5);
  CHECK(says(verdict(request), "whole number"));
  request.op = col::Op::premul_sum(std::numeric_limits<double>::infinity());
  CHECK(says(verdict(request), "whole number"));
  request.op = col::Op::premul_sum(2);
  CHECK(verdict(request) == "ok");
}

TEST_CASE("checks: overlap other than in place is refused", "[group]") {
  Buffers b;
  const col::TensorView nine(b.nine);
  CHECK(says(verdict(make(Collective::allreduce, nine.slice(0, 3), nine.slice(1, 3))), "overlap"));
  CHECK(says(verdict(make(Collective::allgather, nine.slice(0, 3), nine)), "overlap"));  // that is rank 0's block
  const col::TensorView six(b.six);
  CHECK(verdict(make(Collective::allreduce, six.slice(0, 3), six.slice(3, 3))) == "ok");  // neighbours
}

TEST_CASE("checks: memory that is mapped read-only is an input", "[group]") {
  constexpr std::size_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  Buffers b;
  const col::TensorView fixed(page, 3, col::DType::float32), nine(page, 9, col::DType::float32);
  for (const Request& request : {make(Collective::allreduce, fixed, fixed), make(Collective::allreduce, b.three, fixed),
                                 make(Collective::broadcast, {}, fixed), make(Collective::scan, b.three, fixed),
                                 make(Collective::reduce, fixed, fixed, 1), make(Collective::allgather, b.three, nine)})
    CHECK(says(verdict(request), "mapped read-only, and the call would write to it; pass a copy"));
  CHECK(verdict(make(Collective::allreduce, fixed, b.three)) == "ok");
  CHECK(verdict(make(Collective::broadcast, {}, fixed, 1)) == "ok");  // the root's
  CHECK(verdict(make(Collective::reduce, fixed, fixed, 0)) == "ok");  // not the root's
  CHECK(verdict(make(Collective::allgather, fixed, b.nine)) == "ok");
  ::munmap(page, kPage);
}

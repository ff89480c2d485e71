#include "group/call/operation.hpp"

#include <array>
#include <set>
#include <vector>

#include "support/catch.hpp"

using col::Collective;
using col::Request;

namespace {

Request base() {
  static std::array<float, 8> in{}, out{};
  Request request;
  request.collective = Collective::reduce;
  request.in = in;
  request.out = out;
  return request;
}

}  // namespace

TEST_CASE("describe: a call in words names what must agree", "[group]") {
  Request request = base();
  CHECK(col::group::describe(request) == "reduce of 8 float32, sum, root 0");
  request.collective = Collective::barrier;
  CHECK(col::group::describe(request) == "barrier");
  const std::array<std::size_t, 2> counts{3, 5};
  request.collective = Collective::allgatherv;
  request.out_counts = counts;
  CHECK(col::group::describe(request) == "allgatherv of [3,5] float32");
}

TEST_CASE("fingerprint: every ingredient changes it, and nothing else does", "[group]") {
  std::vector<std::uint64_t> all;
  const auto add = [&](auto change) {
    Request request = base();
    change(request);
    all.push_back(col::group::fingerprint(1, request));
  };
  add([](Request&) {});
  add([](Request& r) { r.collective = Collective::allreduce; });
  add([](Request& r) { r.in.count = 7; });
  add([](Request& r) { r.in.dtype = col::DType::int32; });
  add([](Request& r) { r.op = col::ReduceOp::min; });
  add([](Request& r) { r.root = 1; });
  all.push_back(col::group::fingerprint(2, base()));
  CHECK(std::set<std::uint64_t>(all.begin(), all.end()).size() == all.size());

  Request other_memory = base();
  std::array<float, 8> elsewhere{};
  other_memory.in = elsewhere;
  CHECK(col::group::fingerprint(1, other_memory) == all.front());
}

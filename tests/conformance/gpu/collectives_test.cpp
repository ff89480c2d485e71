// Every collective on GPUs.
#include <cstdint>

#include "conformance/gpu/calls.hpp"
#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

using col::test::check_good;
using col::test::moves;
using col::test::reductions;
using col::test::ring_of_messages;
using col::test::run_gpu_ranks;
using col::test::uneven_moves;

GPU_TEST_CASE("gpu: reductions of every type are right on every rank", "[gpu]") {
  check_good(run_gpu_ranks(2, [](col::Group& group, int gpu) {
    reductions<std::int8_t>(group, gpu, 257);
    reductions<std::uint8_t>(group, gpu, 257);
    reductions<std::int32_t>(group, gpu, 257);
    reductions<std::uint32_t>(group, gpu, 257);
    reductions<std::int64_t>(group, gpu, 257);
    reductions<std::uint64_t>(group, gpu, 257);
    reductions<col::float16>(group, gpu, 257);
    reductions<col::bfloat16>(group, gpu, 257);
    reductions<float>(group, gpu, 257);
    reductions<double>(group, gpu, 257);
  }));
  for (const int ranks : {1, 4, 8}) {
    check_good(run_gpu_ranks(ranks, [](col::Group& group, int gpu) {
      reductions<std::int32_t>(group, gpu, 1);
      reductions<float>(group, gpu, 100);
    }));
  }
}

GPU_TEST_CASE("gpu: what only moves data is right on every rank, and leaves other outputs alone", "[gpu]") {
  for (const int ranks : {1, 2, 4, 8}) {
    check_good(run_gpu_ranks(ranks, [](col::Group& group, int gpu) {
      moves(group, gpu, 1);
      moves(group, gpu, 777);
      uneven_moves(group, gpu);
      if (group.size() > 1) ring_of_messages(group, gpu);
    }));
  }
}

// Test cases that need so many GPUs. One that asks for more than this machine has stops there, and says so: what came
// before has been tested, the rest is skipped.
#pragma once

#include <cstdio>
#include <string>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

namespace col::test {

// Runs a case; what it is skipped for goes to standard output, for whoever counts it.
inline void run_gpu_case(const std::string& name, void (*body)()) {
  try {
    body();
  } catch (const TooFewGpus& few) {
    std::printf("skipped from %d GPUs up: %s\n", few.needed, name.c_str());
    std::fflush(stdout);
  }
}

}  // namespace col::test

// Several files may be one translation unit: a line is not enough of a name.
#define COL_GPU_CASE(body, name, tags)      \
  static void body();                       \
  TEST_CASE(name, tags) {                   \
    ::col::test::run_gpu_case(name, &body); \
  }                                         \
  static void body()
#define COL_GPU_CASE_NUMBERED(number, name, tags) COL_GPU_CASE(gpu_case_##number, name, tags)
#define COL_GPU_CASE_EXPANDED(number, name, tags) COL_GPU_CASE_NUMBERED(number, name, tags)
#define GPU_TEST_CASE(name, tags) COL_GPU_CASE_EXPANDED(__COUNTER__, name, tags)

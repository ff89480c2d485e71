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

#define COL_GPU_CASE_BODY(line) COL_GPU_CASE_JOIN(gpu_case_, line)
#define COL_GPU_CASE_JOIN(a, b) a##b
#define GPU_TEST_CASE(name, tags)                                  \
  static void COL_GPU_CASE_BODY(__LINE__)();                       \
  TEST_CASE(name, tags) {                                          \
    ::col::test::run_gpu_case(name, &COL_GPU_CASE_BODY(__LINE__)); \
  }                                                                \
  static void COL_GPU_CASE_BODY(__LINE__)()

// What every entry point does before its own work: count, fail on demand, check the state of the driver.
#pragma once

#include "support/fake_gpu/cuda/context.hpp"

namespace fake_gpu {

enum class Needs { nothing, driver, context };

// What an entry point's body gets: the locked machine, and the current context if the body needs one.
struct Call {
  Machine& machine;
  Lock lock;
  std::shared_ptr<Context> context;
};

// CUDA_SUCCESS when the body may run.
CUresult enter(Call& call, const char* name, Needs needs);

template <typename Body>
CUresult entry(const char* name, Needs needs, Body body) {
  Call call{machine(), {}, nullptr};
  const CUresult allowed = enter(call, name, needs);
  return allowed != CUDA_SUCCESS ? allowed : body(call);
}

}  // namespace fake_gpu

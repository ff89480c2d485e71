// What every entry point does before its own work: count, fail on demand, check the state of the driver; and the
// devices and their primary contexts, which it looks at.
#pragma once

#include <type_traits>

#include "support/fake_gpu/cuda/stream.hpp"

namespace fake_gpu {

// Reads the environment and makes the devices. What cuInit returns.
CUresult make_devices(Machine& machine);

// The contexts of this thread, the current one last; a null handle may be on top.
std::vector<CUcontext>& context_stack();
// The current context, dead or alive; null when there is none.
std::shared_ptr<Context> current_context(const Machine& machine);

CUresult retain_primary(Machine& machine, int device, CUcontext* handle);
// At the last release all work of the context is waited for, and all it holds is let go.
CUresult release_primary(Machine& machine, Lock& lock, int device);

enum class Needs { nothing, driver, context };

// What an entry point's body gets: the locked machine, and the current context if the body needs one.
struct Call {
  Machine& machine;
  Lock lock;
  std::shared_ptr<Context> context;
};

// CUDA_SUCCESS when the body may run.
CUresult enter(Call& call, const char* name, Needs needs);

// Thrown by what an entry point's body calls; the code is what the entry point returns.
struct Refusal {
  CUresult code;
};
inline void fail_if(bool bad, CUresult code) {
  if (bad) throw Refusal{code};
}
inline void fail_on(CUresult code) {
  fail_if(code != CUDA_SUCCESS, code);
}
// Refuses the call if there is no such stream.
inline std::shared_ptr<Stream> stream_of(const Call& call, CUstream handle) {
  auto stream = find_stream(call.machine, handle, call.context);
  fail_if(stream == nullptr, CUDA_ERROR_INVALID_HANDLE);
  return stream;
}

template <typename Body>
CUresult entry(const char* name, Needs needs, Body body) {
  Call call{machine(), {}, nullptr};
  try {
    fail_on(enter(call, name, needs));
    if constexpr (std::is_void_v<decltype(body(call))>) {
      body(call);
      return CUDA_SUCCESS;
    } else {
      return body(call);
    }
  } catch (const Refusal& refusal) {
    return refusal.code;
  }
}

}  // namespace fake_gpu

#include "support/fake_gpu/cuda/entry.hpp"

#include <unistd.h>

namespace fake_gpu {

CUresult enter(Call& call, const char* name, Needs needs) {
  if (auto code = call_log().enter(name)) return static_cast<CUresult>(*code);
  if (inside_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  const int process = call.machine.process;
  // Looked at before the lock, which a child may have inherited locked.
  if (process != 0 && process != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  call.lock = Lock(call.machine.mutex);
  if (needs == Needs::nothing) return CUDA_SUCCESS;
  if (!call.machine.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  call.context = current_context(call.machine);
  if (needs == Needs::driver) return CUDA_SUCCESS;
  if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return call.context->broken;
}

}  // namespace fake_gpu

// Entry points: the current context.
#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

bool known(const Machine& machine, CUcontext context) {
  return context == nullptr || machine.contexts.find(context) != nullptr;
}

}  // namespace

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return entry("cuCtxGetCurrent", Needs::driver, [&](Call&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = context_stack().empty() ? nullptr : context_stack().back();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return entry("cuCtxSetCurrent", Needs::driver, [&](Call& call) {
    if (!known(call.machine, context)) return CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = context_stack();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return entry("cuCtxPushCurrent_v2", Needs::driver, [&](Call& call) {
    if (!known(call.machine, context)) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return entry("cuCtxPopCurrent_v2", Needs::driver, [&](Call&) {
    auto& stack = context_stack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return entry("cuCtxGetDevice", Needs::context, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = call.context->device;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return entry("cuCtxGetStreamPriorityRange", Needs::context, [&](Call&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  return entry("cuCtxSynchronize", Needs::context, [&](Call& call) {
    const CUresult allowed = forbid_wait_for_context(call.machine, *call.context);
    if (allowed != CUDA_SUCCESS) return allowed;
    drain(call.machine, call.lock, *call.context, "cuCtxSynchronize");
    return call.context->broken;
  });
}

// Entry points: streams.
#include <algorithm>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

CUresult create(Call& call, CUstream* handle, unsigned flags, int priority) {
  if (handle == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  priority = std::min(0, std::max(kGreatestPriority, priority));
  auto stream = std::make_shared<Stream>(call.context, flags, priority, false);
  call.context->streams.push_back(stream);
  *handle = call.machine.streams.add(stream);
  return CUDA_SUCCESS;
}

// The null stream may not be looked at while a stream that it orders with is captured.
CUresult forbid_look(Call& call, Stream& stream) {
  return stream.is_null() ? forbid_null_stream(call.machine, *stream.context()) : forbid_wait_for_stream(stream);
}

}  // namespace

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) {
  return entry("cuStreamCreate", Needs::context, [&](Call& call) { return create(call, stream, flags, 0); });
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return entry("cuStreamCreateWithPriority", Needs::context,
               [&](Call& call) { return create(call, stream, flags, priority); });
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
  return entry("cuStreamDestroy_v2", Needs::context, [&](Call& call) {
    auto stream = call.machine.streams.find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != nullptr) return forbid_wait_for_stream(*stream);
    call.machine.streams.take(handle);
    stream->close();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return entry("cuStreamQuery", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult allowed = forbid_look(call, *stream);
    if (allowed != CUDA_SUCCESS) return allowed;
    if (stream->context()->broken != CUDA_SUCCESS) return stream->context()->broken;
    return stream->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return entry("cuStreamSynchronize", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult allowed = forbid_look(call, *stream);
    if (allowed != CUDA_SUCCESS) return allowed;
    Ticket last = stream->last();
    call.machine.wait(call.lock, "cuStreamSynchronize", [&] { return last.done(); });
    return stream->context()->broken;
  });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  return entry("cuStreamWaitEvent", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    auto event = call.machine.events.find(event_handle);
    if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (event->capture != nullptr) return join_capture(stream, *event);
    if (stream->capture != nullptr) {
      const CUresult state =
          stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      stream->capture->invalid = true;
      return state;
    }
    if (event->ticket.done()) return CUDA_SUCCESS;
    return enqueue(call.machine, *stream, nullptr, "a wait for an event", nullptr, {event->ticket});
  });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return entry("cuStreamGetCtx", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = stream->context()->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return entry("cuStreamGetPriority", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return entry("cuStreamGetFlags", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return entry("cuLaunchHostFunc", Needs::context, [&](Call& call) {
    auto stream = find_stream(call.machine, handle, call.context);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto work = [function, data] {
      inside_host_function() = true;
      function(data);
      inside_host_function() = false;
    };
    return enqueue(call.machine, *stream, work, "a host function");
  });
}

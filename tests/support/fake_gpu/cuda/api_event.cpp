// Entry points: events.
#include <algorithm>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

CUresult record(Call& call, CUevent event_handle, CUstream stream_handle, unsigned flags) {
  auto event = call.machine.events.find(event_handle);
  auto stream = find_stream(call.machine, stream_handle, call.context);
  if (event == nullptr || stream == nullptr || event->context != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return CUDA_SUCCESS;
  }
  auto reached = std::make_shared<std::chrono::steady_clock::time_point>();
  auto work = [reached] { *reached = std::chrono::steady_clock::now(); };
  const CUresult result = enqueue(call.machine, *stream, work, "the record of an event", &event->ticket);
  if (result != CUDA_SUCCESS) return result;
  event->reached = std::move(reached);
  event->capture = nullptr;
  return CUDA_SUCCESS;
}

// What a look at the event says before its state counts.
CUresult forbid_look(Call& call, const Event* event) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult allowed = forbid_unsafe_call(call.machine);
  if (allowed != CUDA_SUCCESS) return allowed;
  return event->capture != nullptr ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuEventCreate(CUevent* handle, unsigned int flags) {
  return entry("cuEventCreate", Needs::context, [&](Call& call) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_NOT_SUPPORTED;  // events between processes
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->flags = flags;
    *handle = call.machine.events.add(std::move(event));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventDestroy(CUevent handle) {
  return entry("cuEventDestroy_v2", Needs::context, [&](Call& call) {
    return call.machine.events.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return entry("cuEventRecord", Needs::context, [&](Call& call) { return record(call, event, stream, 0); });
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return entry("cuEventRecordWithFlags", Needs::context,
               [&](Call& call) { return record(call, event, stream, flags); });
}

// The event comes after the last work of every stream: on a stream of its own, which is gone when it has been reached.
CUresult CUDAAPI cuCtxRecordEvent(CUcontext context_handle, CUevent event_handle) {
  return entry("cuCtxRecordEvent", Needs::context, [&](Call& call) {
    auto context = call.machine.contexts.find(context_handle);
    auto event = call.machine.events.find(event_handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (event == nullptr || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
    if (context->broken != CUDA_SUCCESS) return context->broken;
    bool captured = false;
    for (const auto& capture : call.machine.captures) {
      const auto& streams = capture->streams;
      if (std::none_of(streams.begin(), streams.end(), [&](const auto& s) { return s->context() == context; }))
        continue;
      capture->invalid = captured = true;
    }
    if (captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    std::vector<Ticket> after{context->null_stream->last()};
    for (const auto& stream : context->streams) after.push_back(stream->last());
    auto marker = std::make_shared<Stream>(context, CU_STREAM_NON_BLOCKING, 0, false);
    context->streams.push_back(marker);
    auto reached = std::make_shared<std::chrono::steady_clock::time_point>();
    auto work = [reached] { *reached = std::chrono::steady_clock::now(); };
    event->ticket = marker->push(work, "the record of an event", std::move(after));
    event->reached = std::move(reached);
    event->capture = nullptr;
    marker->close();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return entry("cuEventQuery", Needs::context, [&](Call& call) {
    auto event = call.machine.events.find(handle);
    const CUresult allowed = forbid_look(call, event.get());
    if (allowed != CUDA_SUCCESS) return allowed;
    if (event->context->broken != CUDA_SUCCESS) return event->context->broken;
    return event->ticket.done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return entry("cuEventSynchronize", Needs::context, [&](Call& call) {
    auto event = call.machine.events.find(handle);
    const CUresult allowed = forbid_look(call, event.get());
    if (allowed != CUDA_SUCCESS) return allowed;
    Ticket ticket = event->ticket;
    call.machine.wait(call.lock, "cuEventSynchronize", [&] { return ticket.done(); });
    return event->context->broken;
  });
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return entry("cuEventElapsedTime_v2", Needs::context, [&](Call& call) {
    auto start = call.machine.events.find(start_handle);
    auto end = call.machine.events.find(end_handle);
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (start == nullptr || end == nullptr || start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (start->capture != nullptr || end->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (start->reached == nullptr || end->reached == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (start->context->broken != CUDA_SUCCESS) return start->context->broken;
    if (!start->ticket.done() || !end->ticket.done()) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(*end->reached - *start->reached).count();
    return CUDA_SUCCESS;
  });
}

// Entry points: streams and events.
#include <algorithm>
#include <chrono>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

// ---- Streams

namespace {

// The null stream may not be looked at while a stream that it orders with is captured.
CUresult forbid_look(Call& call, Stream& stream) {
  return stream.is_null() ? forbid_null_stream(call.machine, *stream.context()) : forbid_wait_for_stream(stream);
}

}  // namespace

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
  return entry("cuStreamCreateWithPriority", Needs::context, [&](Call& call) {
    fail_if(handle == nullptr || flags > CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    auto stream = std::make_shared<Stream>(call.context, flags, std::clamp(priority, kGreatestPriority, 0), false);
    call.context->streams.push_back(stream);
    *handle = call.machine.streams.add(stream);
  });
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
  const CUresult found = entry("cuStreamQuery", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    fail_on(forbid_look(call, *stream));
    if (stream->context()->broken != CUDA_SUCCESS) return stream->context()->broken;
    return stream->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
  if (found == CUDA_ERROR_NOT_READY) pause_before_next_look();
  return found;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return entry("cuStreamSynchronize", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    fail_on(forbid_look(call, *stream));
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

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return entry("cuLaunchHostFunc", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto work = [function, data] {
      inside_host_function() = true;
      function(data);
      inside_host_function() = false;
    };
    return enqueue(call.machine, *stream, work, "a host function");
  });
}

// ---- Events

namespace {

CUresult record(Call& call, CUevent event_handle, CUstream stream_handle) {
  auto event = call.machine.events.find(event_handle);
  auto stream = find_stream(call.machine, stream_handle, call.context);
  if (event == nullptr || stream == nullptr || event->context != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
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
    fail_if(handle == nullptr, CUDA_ERROR_INVALID_VALUE);
    fail_if((flags & ~kKnown) != 0, CUDA_ERROR_NOT_SUPPORTED);  // events between processes
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->flags = flags;
    *handle = call.machine.events.add(std::move(event));
  });
}

CUresult CUDAAPI cuEventDestroy(CUevent handle) {
  return entry("cuEventDestroy_v2", Needs::context, [&](Call& call) {
    return call.machine.events.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return entry("cuEventRecord", Needs::context, [&](Call& call) { return record(call, event, stream); });
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
  const CUresult found = entry("cuEventQuery", Needs::context, [&](Call& call) {
    auto event = call.machine.events.find(handle);
    fail_on(forbid_look(call, event.get()));
    if (event->context->broken != CUDA_SUCCESS) return event->context->broken;
    return event->ticket.done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
  if (found == CUDA_ERROR_NOT_READY) pause_before_next_look();
  return found;
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return entry("cuEventSynchronize", Needs::context, [&](Call& call) {
    auto event = call.machine.events.find(handle);
    fail_on(forbid_look(call, event.get()));
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

// The name that drivers before 12.8 have, and newer ones keep.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

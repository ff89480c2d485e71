#include "support/fake_gpu/cuda/capture.hpp"

#include <algorithm>

namespace fake_gpu {
namespace {

// Every node must lead to what the origin ended with, else work of another stream was never joined.
bool all_joined(const Capture& capture) {
  const auto& nodes = capture.graph->nodes;
  std::set<size_t> reached = capture.origin->frontier;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (reached.contains(i)) reached.insert(nodes[i].after.begin(), nodes[i].after.end());
  }
  return reached.size() == nodes.size();
}

bool orders_null_stream(const Capture& capture, const Context& context) {
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  return std::any_of(capture.streams.begin(), capture.streams.end(),
                     [&](const auto& stream) { return stream->context().get() == &context && stream->blocking(); });
}

}  // namespace

CUresult begin_capture(Machine& machine, const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode) {
  if (stream->is_null()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->graph = std::make_shared<Graph>();
  capture->handle = machine.graphs.add(capture->graph);
  capture->streams.push_back(stream);
  stream->capture = capture;
  stream->frontier.clear();
  machine.captures.push_back(capture);
  return CUDA_SUCCESS;
}

CUresult end_capture(Machine& machine, const std::shared_ptr<Stream>& stream, CUgraph* graph) {
  *graph = nullptr;
  auto capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  for (const auto& member : capture->streams) {
    member->capture = nullptr;
    member->frontier.clear();
  }
  capture->streams.clear();
  capture->origin = nullptr;
  capture->graph = nullptr;  // events of the capture, which may outlive it, do not keep it
  std::erase(machine.captures, capture);
  if (result == CUDA_SUCCESS) {
    *graph = capture->handle;
  } else {
    machine.graphs.take(capture->handle);
  }
  return result;
}

void add_node(Stream& stream, Work work, const char* label) {
  auto& nodes = stream.capture->graph->nodes;
  nodes.push_back({std::move(work), label, stream.frontier});
  stream.frontier = {nodes.size() - 1};
}

CUresult join_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  const auto& capture = event.capture;
  if (stream->is_null()) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    stream->capture->invalid = capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (capture->origin == nullptr) return CUDA_ERROR_INVALID_VALUE;  // its capture has ended; so says 580.159
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture == nullptr) {
    stream->capture = capture;
    stream->frontier.clear();
    capture->streams.push_back(stream);
  }
  stream->frontier.insert(event.frontier.begin(), event.frontier.end());
  return CUDA_SUCCESS;
}

CUstreamCaptureMode& mode_of_thread() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult forbid_unsafe_call(Machine& machine) {
  CUresult result = CUDA_SUCCESS;
  if (mode_of_thread() == CU_STREAM_CAPTURE_MODE_RELAXED) return result;
  const bool heeds_others = mode_of_thread() == CU_STREAM_CAPTURE_MODE_GLOBAL;
  for (const auto& capture : machine.captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbidden = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                               : heeds_others && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbidden) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult forbid_null_stream(Machine& machine, const Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : machine.captures) {
    if (!orders_null_stream(*capture, context)) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

bool orders_with_capture(const Machine& machine, const Context& context) {
  return std::any_of(machine.captures.begin(), machine.captures.end(),
                     [&](const auto& capture) { return orders_null_stream(*capture, context); });
}

CUresult forbid_wait_for_stream(Stream& stream) {
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  const bool was_invalid = stream.capture->invalid;
  stream.capture->invalid = true;
  return was_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult forbid_wait_for_context(Machine& machine, const Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : machine.captures) {
    for (const auto& stream : capture->streams) {
      if (stream->context().get() != &context) continue;
      capture->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

}  // namespace fake_gpu

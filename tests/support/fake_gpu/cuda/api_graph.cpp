// Entry points: capture of streams, and graphs.
#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult instantiate(Call& call, CUgraphExec* exec, CUgraph graph_handle) {
  auto graph = call.machine.graphs.find(graph_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& capture : call.machine.captures) {
    if (capture->graph == graph) return CUDA_ERROR_INVALID_VALUE;
  }
  auto copy = std::make_shared<GraphExec>();
  copy->graph = std::make_shared<const Graph>(*graph);
  *exec = call.machine.graph_execs.add(std::move(copy));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  return entry("cuStreamBeginCapture_v2", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    return begin_capture(call.machine, stream, mode);
  });
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry("cuThreadExchangeStreamCaptureMode", Needs::driver, [&](Call&) {
    fail_if(mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED,
            CUDA_ERROR_INVALID_VALUE);
    std::swap(mode_of_thread(), *mode);
  });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return entry("cuStreamEndCapture", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return end_capture(call.machine, stream, graph);
  });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return entry("cuStreamIsCapturing", Needs::context, [&](Call& call) {
    auto stream = stream_of(call, handle);
    fail_if(status == nullptr, CUDA_ERROR_INVALID_VALUE);
    fail_if(stream->is_null() && orders_with_capture(call.machine, *stream->context()),
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *status = status_of(*stream);
  });
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return entry("cuGraphInstantiateWithFlags", Needs::context, [&](Call& call) {
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    return instantiate(call, exec, graph);
  });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return entry("cuGraphLaunch", Needs::context, [&](Call& call) {
    auto exec = call.machine.graph_execs.find(handle);
    auto stream = find_stream(call.machine, stream_handle, call.context);
    if (exec == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // a graph inside a graph
    auto work = [graph = exec->graph] {
      for (const GraphNode& node : graph->nodes) {
        if (node.work) node.work();
      }
    };
    // Launches of one graph follow one another, whatever their streams.
    std::vector<Ticket> after;
    if (!exec->last_launch.done()) after.push_back(exec->last_launch);
    return enqueue(call.machine, *stream, work, "a graph", &exec->last_launch, std::move(after));
  });
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  return entry("cuGraphExecDestroy", Needs::context, [&](Call& call) {
    return call.machine.graph_execs.take(exec) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return entry("cuGraphDestroy", Needs::context, [&](Call& call) {
    auto graph = call.machine.graphs.find(handle);
    fail_if(graph == nullptr, CUDA_ERROR_INVALID_HANDLE);
    for (const auto& capture : call.machine.captures) {
      fail_if(capture->graph == graph, CUDA_ERROR_INVALID_VALUE);
    }
    call.machine.graphs.take(handle);
  });
}

// Stream capture and graphs of the stand-in for the driver.
#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

namespace {

CUresult begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
  return cuStreamBeginCapture(stream, mode);
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

}  // namespace

TEST_CASE("fake cuda: a graph runs what a stream captured, as often as it is launched") {
  OnDevice device(0);
  OwnStream stream;
  Buffer<unsigned char> data(4);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(begin(stream) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuMemsetD8Async(data.address(), 5, 4, stream) == CUDA_SUCCESS);
  CHECK(data.values()[0] != 5);
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    data.set({0, 0, 0, 0});
    CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(data.values() == std::vector<unsigned char>{5, 5, 5, 5});
  }
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(fake_gpu_alive("graphs") == 0);
  CHECK(fake_gpu_alive("graph_execs") == 0);
}

TEST_CASE("fake cuda: a capture spreads over events and must be joined") {
  OnDevice device(0);
  OwnStream origin, branch;
  Buffer<unsigned char> data(2);
  CUevent fork, join;
  REQUIRE(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  REQUIRE(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  for (bool joined : {true, false}) {
    REQUIRE(begin(origin) == CUDA_SUCCESS);
    CHECK(cuEventRecord(fork, origin) == CUDA_SUCCESS);
    CHECK(cuStreamWaitEvent(branch, fork, 0) == CUDA_SUCCESS);
    CHECK(status_of(branch) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(cuMemsetD8Async(data.address(), 1, 1, origin) == CUDA_SUCCESS);
    CHECK(cuMemsetD8Async(data.address() + 1, 2, 1, branch) == CUDA_SUCCESS);
    if (joined) {
      CHECK(cuEventRecord(join, branch) == CUDA_SUCCESS);
      CHECK(cuStreamWaitEvent(origin, join, 0) == CUDA_SUCCESS);
    }
    CHECK(cuStreamEndCapture(branch, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(cuStreamEndCapture(origin, &graph) == (joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
    CHECK((graph != nullptr) == joined);
    CHECK(status_of(branch) == CU_STREAM_CAPTURE_STATUS_NONE);
    if (!joined) continue;
    CHECK(cuEventQuery(join) == CUDA_ERROR_CAPTURED_EVENT);
    CUgraphExec exec = nullptr;
    REQUIRE(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    CHECK(cuGraphLaunch(exec, origin) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(origin) == CUDA_SUCCESS);
    CHECK(data.values() == std::vector<unsigned char>{1, 2});
    CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
  CHECK(cuEventDestroy(fork) == CUDA_SUCCESS);
  CHECK(cuEventDestroy(join) == CUDA_SUCCESS);
}

TEST_CASE("fake cuda: calls that a capture forbids fail and spoil it") {
  OnDevice device(0);
  OwnStream stream;
  Buffer<char> data(1);
  CUdeviceptr pointer;
  CUgraph graph = nullptr;
  const std::vector<std::pair<const char*, std::function<CUresult()>>> forbidden = {
      {"allocate", [&] { return cuMemAlloc(&pointer, 16); }},
      {"synchronize the stream", [&] { return cuStreamSynchronize(stream); }},
      {"query the stream", [&] { return cuStreamQuery(stream); }},
      {"synchronize the context", [&] { return cuCtxSynchronize(); }},
  };
  for (const auto& [name, call] : forbidden) {
    INFO(name);
    REQUIRE(begin(stream) == CUDA_SUCCESS);
    CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(cuMemsetD8Async(data.address(), 1, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
  }
  CHECK(begin(nullptr) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("fake cuda: a global capture is spoilt by another thread, a local one is not") {
  OnDevice device(0);
  OwnStream stream;
  CUgraph graph = nullptr;
  for (auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    REQUIRE(begin(stream, mode) == CUDA_SUCCESS);
    CUresult elsewhere = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      OnDevice same(0);
      CUdeviceptr pointer = 0;
      elsewhere = cuMemAlloc(&pointer, 16);
      if (elsewhere == CUDA_SUCCESS) cuMemFree(pointer);
    }).join();
    const bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    CHECK(elsewhere == (global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS));
    CHECK(cuStreamEndCapture(stream, &graph) == (global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS));
    if (graph != nullptr) CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
}

TEST_CASE("fake cuda: the null stream and events from outside do not mix with a capture") {
  OnDevice device(0);
  OwnStream blocking(CU_STREAM_DEFAULT), outside;
  Buffer<char> data(1);
  CUgraph graph = nullptr;
  CUevent event;
  REQUIRE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  REQUIRE(begin(blocking) == CUDA_SUCCESS);
  CHECK(cuMemsetD8Async(data.address(), 1, 1, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuEventRecord(event, outside) == CUDA_SUCCESS);
  REQUIRE(begin(blocking) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(blocking, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuEventDestroy(event) == CUDA_SUCCESS);
}

TEST_CASE("fake nccl: a captured collective runs with every launch of the graph") {
  check_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    auto good = [&](bool fine, const char* what) { verdict.expect(fine, what); };
    Buffer<int> data(1);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    good(begin(stream) == CUDA_SUCCESS, "begin");
    good(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream) == ncclSuccess, "allreduce");
    good(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS, "end");
    good(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS, "instantiate");
    for (int round = 1; round <= 3; ++round) {
      data.set({round + rank});
      good(cuGraphLaunch(exec, stream) == CUDA_SUCCESS, "launch");
      good(cuStreamSynchronize(stream) == CUDA_SUCCESS, "synchronize");
      good(data.values()[0] == 2 * round + 1, "data");
    }
    good(cuGraphExecDestroy(exec) == CUDA_SUCCESS && cuGraphDestroy(graph) == CUDA_SUCCESS, "graphs");
    good(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
}

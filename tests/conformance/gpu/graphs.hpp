// Graphs of what a stream is given.
#pragma once

#include <cuda.h>

#include <chrono>
#include <functional>

#include "backend/nccl/shared_library.hpp"
#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {

// From when it is made until end(), the stream's work is noted down instead of run.
class Capture {
 public:
  explicit Capture(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) : stream_(stream) {
    must(driver().begin(stream, mode), "begin");
  }
  ~Capture() {
    CUgraph unfinished = nullptr;
    if (!ended_ && driver().end(stream_, &unfinished) == CUDA_SUCCESS && unfinished != nullptr)
      driver().destroy(unfinished);
    if (executable_ != nullptr) driver().destroy_executable(executable_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void end() {
    CUgraph graph = nullptr;
    ended_ = true;
    must(driver().end(stream_, &graph), "end");
    must(driver().instantiate(&executable_, graph, 0), "instantiate");
    must(driver().destroy(graph), "destroy");
  }

  // Runs what was noted down, and waits for it; not for long once `is_lost` says that another rank has failed.
  void replay(const std::function<bool()>& is_lost = [] { return false; }) {
    must(driver().launch(executable_, stream_), "launch");
    nccl_backend::GpuEvent ended(cuda());
    ended.record(stream_);
    Deadline deadline = Deadline::after(std::chrono::seconds(20));
    for (bool was_lost = false; !ended.done();) {
      if (!was_lost && is_lost()) {
        was_lost = true;
        deadline = Deadline::after(std::chrono::seconds(2));
      }
      expect(!deadline.expired(), "a stream does not end");
    }
  }

 private:
  // What the library itself does not use.
  struct Driver {
    Driver() {
      const nccl_backend::SharedLibrary library("the driver", {"libcuda.so.1"});
      library.bind("cuStreamBeginCapture_v2", begin);
      library.bind("cuStreamEndCapture", end);
      library.bind("cuGraphInstantiateWithFlags", instantiate);
      library.bind("cuGraphLaunch", launch);
      library.bind("cuGraphDestroy", destroy);
      library.bind("cuGraphExecDestroy", destroy_executable);
    }
    decltype(&::cuStreamBeginCapture) begin;
    decltype(&::cuStreamEndCapture) end;
    CUresult (*instantiate)(CUgraphExec*, CUgraph, unsigned long long);
    decltype(&::cuGraphLaunch) launch;
    decltype(&::cuGraphDestroy) destroy;
    decltype(&::cuGraphExecDestroy) destroy_executable;
  };

  static const Driver& driver() {
    static const Driver kDriver;
    return kDriver;
  }
  static void must(CUresult result, const char* what) { cuda().check(result, what); }

  CUstream stream_;
  bool ended_ = false;
  CUgraphExec executable_ = nullptr;
};

}  // namespace col::test

// What the self tests of the stand-ins share: a device of one's own, buffers, ranks as threads.
#pragma once

#include <cuda.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"
#include "support/soon.hpp"

namespace fake_gpu_test {

using col::test::soon;

// Retains a device's context and makes it current; leaves no context current.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context_, device) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context_) != CUDA_SUCCESS) {
      throw std::runtime_error("no device " + std::to_string(device));
    }
  }
  ~OnDevice() {
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxRelease(device_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  CUcontext context() const { return context_; }

 private:
  int device_;
  CUcontext context_ = nullptr;
};

class OwnStream {
 public:
  explicit OwnStream(unsigned flags = CU_STREAM_NON_BLOCKING) { cuStreamCreateWithPriority(&stream_, flags, 0); }
  ~OwnStream() { cuStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator CUstream() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

// Host memory as an end of a copy.
inline CUdeviceptr address_of(const void* host) {
  return reinterpret_cast<CUdeviceptr>(host);
}

// Device memory of `count` elements.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    if (cuMemAlloc(&pointer_, count * sizeof(T)) != CUDA_SUCCESS) throw std::runtime_error("no memory");
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) { set(values); }
  ~Buffer() { cuMemFree(pointer_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr address() const { return pointer_; }
  T* get() const { return reinterpret_cast<T*>(pointer_); }
  // Behind the driver's back: no stream is waited for.
  void set(const std::vector<T>& values) { std::copy(values.begin(), values.end(), view()); }
  std::vector<T> values() const { return {view(), view() + count_}; }

 private:
  T* view() const { return static_cast<T*>(fake_gpu_host_view(pointer_, count_ * sizeof(T))); }

  size_t count_;
  CUdeviceptr pointer_ = 0;
};

inline void run_as_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&body, rank] {
      OnDevice device(rank);
      body(rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

// Checks of several threads: Catch takes assertions of one thread only.
class Verdict {
 public:
  void expect(bool good, const std::string& text) {
    std::lock_guard lock(mutex_);
    if (!good) failures_ += text + "; ";
  }
  std::string failures() {
    std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  std::mutex mutex_;
  std::string failures_;
};

// Ranks that meet by an identity of NCCL; each is a thread on a device of its own.
inline void check_ranks(int size, const std::function<void(Verdict&, int rank, const ncclUniqueId&)>& body) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  Verdict verdict;
  run_as_ranks(size, [&](int rank) { body(verdict, rank, id); });
  CHECK(verdict.failures() == "");
}

// The same with a communicator and a stream for each. The body must destroy or abort the communicator.
inline void check_communicator(int size, const std::function<void(Verdict&, ncclComm_t, int rank, CUstream)>& body) {
  check_ranks(size, [&](Verdict& verdict, int rank, const ncclUniqueId& id) {
    ncclComm_t comm = nullptr;
    const ncclResult_t made = ncclCommInitRank(&comm, size, id, rank);
    verdict.expect(made == ncclSuccess, ncclGetLastError(nullptr));
    OwnStream stream;
    if (made == ncclSuccess) body(verdict, comm, rank, stream);
  });
  CHECK(fake_nccl_alive("communicators") == 0);
  CHECK(fake_nccl_running() == 0);
  CHECK(fake_gpu_alive("contexts") == 0);
}

}  // namespace fake_gpu_test

// What the stand-in for NCCL asks of the stand-in for the driver. These calls are not counted as the program's.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace fake_gpu {

struct Launch {
  int device;
  // The work runs on the first, after what the others were given, and the others go on after it. A null stream is the
  // device's null stream.
  std::vector<CUstream> streams;
  std::function<void()> work;
  const char* label;
};

struct Whereabouts {
  char* bytes;  // where the host finds them
  int device;   // -1: page-locked host memory
};

}  // namespace fake_gpu

extern "C" {

// Calls cuInit if nobody has.
CUresult fake_gpu_start(void);
// The device of the current context; 0, as the CUDA runtime has it, when there is none.
int fake_gpu_current_device(void);
// The number of devices, and a device's number before CUDA_VISIBLE_DEVICES.
int fake_gpu_device_count(void);
int fake_gpu_physical_device(int device);
CUresult fake_gpu_retain_device(int device);
CUresult fake_gpu_release_device(int device);
// `last` remembers the launch: the next one with the same `last` comes after it, on whatever stream.
CUresult fake_gpu_launch(const fake_gpu::Launch& launch, std::shared_ptr<void>& last);
// A look of NCCL's at an event of its own, with the capture mode of the calling thread.
CUresult fake_gpu_look_at_event(void);
// Null bytes when the range is not within memory that the device can reach.
fake_gpu::Whereabouts fake_gpu_locate(uint64_t address, size_t bytes);
CUresult fake_gpu_allocate(int device, size_t bytes, uint64_t* address);
CUresult fake_gpu_free(uint64_t address);

}  // extern "C"

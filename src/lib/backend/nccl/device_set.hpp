// An ordered list of this rank's GPUs. Each has a communicator that connects it to the GPUs of the other ranks. One
// thread drives all of them. The work that it gives to NCCL for one GPU waits for the others, so NCCL gets the work for
// all GPUs together.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <col/channel.hpp>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

class DeviceSet {
 public:
  // Every wait calls `look` again and again; an exception from it ends the wait. `rest`: as Communicator::on_wait() has
  // it. `priority`: of the streams. `cuda` must outlive it. Throws what GpuDevice throws.
  DeviceSet(const CudaDriver& cuda, std::span<const int> devices, Priority priority, std::function<void()> look,
            Communicator::Rest rest);
  ~DeviceSet();
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  std::size_t size() const noexcept { return gpus_.size(); }
  const GpuDevice& device(std::size_t gpu) const { return *gpus_[gpu].device; }
  const Communicator& communicator(std::size_t gpu) const { return *gpus_[gpu].communicator; }
  bool is_of(std::span<const int> devices) const;
  // Call it once it is connected.
  std::vector<Communicator*> communicators() const;

  // Connects the GPUs to the others; their ranks begin with that of `first`. Throws what wait.check() and Communicator
  // throw.
  void connect(const NcclLibrary& nccl, const Membership& first, WaitContext& wait);

  // The work for one GPU.
  using Issue = std::function<NcclCall(std::size_t gpu, ncclComm_t comm, CUstream stream)>;
  // Gives NCCL what `issue` says for every GPU, and waits until all work has ended. The work comes after what the
  // default stream of each GPU has got so far. `doing` as in "cannot start the allreduce". Throws as connect().
  void run(std::string_view doing, const Issue& issue, WaitContext& wait);

 private:
  struct Gpu {
    std::shared_ptr<const GpuDevice> device;  // shared: with calls of NCCL's
    std::unique_ptr<GpuStream> stream;
    std::unique_ptr<GpuEvent> before, ended;
    std::unique_ptr<Communicator> communicator;
  };

  void begin(std::string_view doing, Together together);
  void check() const;
  bool done() const;

  const CudaDriver& cuda_;
  const Priority priority_;
  const std::function<void()> look_;
  const Communicator::Rest rest_;
  std::vector<Gpu> gpus_;
};

}  // namespace col::nccl_backend

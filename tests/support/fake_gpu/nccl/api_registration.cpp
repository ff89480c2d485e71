// Entry points: windows, and operators of one's own.
#include <cstring>

#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

using namespace fake_nccl;

namespace {

void require_buffer(const Communicator& communicator, void* buffer, size_t bytes) {
  require(buffer != nullptr && bytes > 0, "the buffer is null or empty");
  const auto place = fake_gpu_locate(reinterpret_cast<uint64_t>(buffer), bytes);
  require(place.bytes != nullptr && (place.device < 0 || place.device == communicator.device()),
          "the buffer is not memory of the communicator's device");
}

}  // namespace

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  return entry("ncclCommWindowRegister", 22700, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    require(win != nullptr, "the window's address is null");
    *win = nullptr;
    require(winFlags == NCCL_WIN_DEFAULT || winFlags == NCCL_WIN_COLL_SYMMETRIC, "unknown flags");
    require_buffer(*communicator, buff, size);
    require(reinterpret_cast<uintptr_t>(buff) % NCCL_WIN_REQUIRED_ALIGNMENT == 0, "a window begins at a page");
    {
      // Other memory has no handle to share: that is no error, and there is no window.
      std::lock_guard lock(registry().mutex);
      if (!registry().has(buff, size)) return ncclSuccess;
    }
    communicator->perform([communicator, buff, size, win, winFlags] {
      communicator->register_window(buff, size, winFlags == NCCL_WIN_COLL_SYMMETRIC, win);
    });
    // From 2.28 on, the job goes on all the same.
    return communicator->config().blocking || version() >= 22800 ? ncclSuccess : ncclInProgress;
  });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return entry("ncclCommWindowDeregister", 22700, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    if (win == nullptr) return ncclSuccess;
    communicator->deregister_window(win);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return entry("ncclCommRegister", 21900, [&] {
    auto communicator = find_communicator(comm);
    require(handle != nullptr, "the handle's address is null");
    communicator->require_ready();
    require_buffer(*communicator, buff, size);
    std::lock_guard lock(communicator->mutex);
    {
      std::lock_guard all(registry().mutex);
      *handle = reinterpret_cast<void*>(registry().new_handle());
    }
    communicator->registrations[*handle] = {buff, size};
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return entry("ncclCommDeregister", 21900, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    std::lock_guard lock(communicator->mutex);
    const auto found = communicator->registrations.find(handle);
    require(found != communicator->registrations.end(), "not a registration of this communicator");
    const auto [buff, size] = found->second;
    if (fake_gpu_locate(reinterpret_cast<uint64_t>(buff), size).bytes == nullptr)
      fake_gpu::die("memory was freed while it was registered");
    communicator->registrations.erase(found);
    return ncclSuccess;
  });
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return entry("ncclRedOpCreatePreMulSum", 21100, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    require(op != nullptr && scalar != nullptr, "the operator or its scalar is null");
    OwnOperator own{{Reduction::Kind::scaled_sum}, datatype};
    const size_t bytes = bytes_of(datatype);
    if (residence == ncclScalarHostImmediate) {
      std::memcpy(&own.reduction.scale, scalar, bytes);
    } else {
      require(residence == ncclScalarDevice, "unknown residence of the scalar");
      require_buffer(*communicator, scalar, bytes);
      own.reduction.scale_at = fake_gpu_locate(reinterpret_cast<uint64_t>(scalar), bytes).bytes;
    }
    std::lock_guard lock(communicator->mutex);
    const int handle = communicator->next_operator++;
    communicator->operators[handle] = own;
    *op = static_cast<ncclRedOp_t>(handle);
    return ncclSuccess;
  });
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return entry("ncclRedOpDestroy", 21100, [&] {
    auto communicator = find_communicator(comm);
    require(op >= ncclNumOps, "a builtin operator cannot be destroyed");
    std::lock_guard lock(communicator->mutex);
    require(communicator->operators.erase(op) == 1, "not an operator of this communicator");
    return ncclSuccess;
  });
}

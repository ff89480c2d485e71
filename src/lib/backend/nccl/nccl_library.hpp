// The entry points of NCCL that are used here, looked up at run time.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>

#include "backend/module.hpp"
#include "backend/nccl/shared_library.hpp"

namespace col::nccl_backend {

// Members have the names of nccl.h without the nccl.
struct NcclLibrary {
  // Loads the library that COL_NCCL_LIBRARY names, else libnccl.so.2 from the places of the dynamic linker or the CUDA
  // toolkit. Throws unavailable if it is not found (with what was tried), or has a version that cannot be used.
  explicit NcclLibrary(const backend::Module::Environment& environment);

  const SharedLibrary library;
  const std::string path = library.path();  // as it was loaded
  decltype(&::ncclGetVersion) GetVersion = library.find("ncclGetVersion");
  const int version = require_version();  // 22809 is 2.28.9
  decltype(&::ncclGetErrorString) GetErrorString = library.find("ncclGetErrorString");
  decltype(&::ncclGetLastError) GetLastError = library.find("ncclGetLastError");
  decltype(&::ncclGetUniqueId) GetUniqueId = library.find("ncclGetUniqueId");
  decltype(&::ncclCommInitRankConfig) CommInitRankConfig = library.find("ncclCommInitRankConfig");
  decltype(&::ncclCommSplit) CommSplit = library.find("ncclCommSplit");
  decltype(&::ncclCommFinalize) CommFinalize = library.find("ncclCommFinalize");
  decltype(&::ncclCommDestroy) CommDestroy = library.find("ncclCommDestroy");
  decltype(&::ncclCommAbort) CommAbort = library.find("ncclCommAbort");
  decltype(&::ncclCommGetAsyncError) CommGetAsyncError = library.find("ncclCommGetAsyncError");
  decltype(&::ncclRedOpCreatePreMulSum) RedOpCreatePreMulSum = library.find("ncclRedOpCreatePreMulSum");
  decltype(&::ncclRedOpDestroy) RedOpDestroy = library.find("ncclRedOpDestroy");
  decltype(&::ncclAllReduce) AllReduce = library.find("ncclAllReduce");
  decltype(&::ncclReduce) Reduce = library.find("ncclReduce");
  decltype(&::ncclBroadcast) Broadcast = library.find("ncclBroadcast");
  decltype(&::ncclAllGather) AllGather = library.find("ncclAllGather");
  decltype(&::ncclReduceScatter) ReduceScatter = library.find("ncclReduceScatter");
  decltype(&::ncclSend) Send = library.find("ncclSend");
  decltype(&::ncclRecv) Recv = library.find("ncclRecv");
  decltype(&::ncclGroupStart) GroupStart = library.find("ncclGroupStart");
  decltype(&::ncclGroupEnd) GroupEnd = library.find("ncclGroupEnd");
  decltype(&::ncclMemAlloc) MemAlloc = library.find("ncclMemAlloc");
  decltype(&::ncclMemFree) MemFree = library.find("ncclMemFree");
  decltype(&::ncclCommRegister) CommRegister = library.find("ncclCommRegister");
  decltype(&::ncclCommDeregister) CommDeregister = library.find("ncclCommDeregister");
  // The types of what follows are written out, because older headers do not declare it. A window is a pointer.
  using Window = void*;
  // From 2.27 on; null before.
  ncclResult_t (*CommWindowRegister)(ncclComm_t comm, void* memory, std::size_t bytes, Window* window,
                                     int flags) = since(kHasWindows, "ncclCommWindowRegister");
  ncclResult_t (*CommWindowDeregister)(ncclComm_t comm, Window window) = since(kHasWindows, "ncclCommWindowDeregister");
  // From 2.28 on; null before.
  ncclResult_t (*AlltoAll)(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) = since(kHasMoreCollectives, "ncclAlltoAll");
  using Rooted = ncclResult_t(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream);
  Rooted* Gather = since(kHasMoreCollectives, "ncclGather");
  Rooted* Scatter = since(kHasMoreCollectives, "ncclScatter");
  // From 2.28.7 on; null before.
  ncclResult_t (*CommRevoke)(ncclComm_t comm, int flags) = since(kHasRevoke, "ncclCommRevoke");

  // Why it cannot connect ranks that share a GPU; empty if it can.
  std::string why_alone() const;

  // True if it takes the parts of one GPU (MIG) for several devices.
  bool tells_parts_apart() const noexcept { return version >= kComparesUuids; }

  std::string version_text() const;
  // For what ranks that connect must have alike: NCCL refuses others with a code that says nothing.
  std::string version_term() const { return "NCCL " + version_text() + ", "; }

  // Settings from the environment, which NCCL reads by itself.
  bool is_told_to_share = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1
  bool has_most_ctas = false;     // NCCL_MAX_CTAS
  // COL_NCCL_BLOCKING=on: communicators wait inside of their calls, which a Launcher makes.
  bool is_blocking = false;

 private:
  static constexpr int kComparesUuids = 23003;
  static constexpr int kHasWindows = 22700, kHasMoreCollectives = 22800, kHasRevoke = 22807;

  int require_version() const;
  SharedLibrary::Symbol since(int first, const char* name) const {
    return version < first ? SharedLibrary::Symbol() : library.find(name);
  }
};

// Calls of NCCL's. It owns what it uses: the thread that makes them may be left behind.
using NcclCall = std::function<ncclResult_t()>;

// Calls that NCCL starts together: they are made by one thread, between ncclGroupStart() and ncclGroupEnd().
class Together {
 public:
  explicit Together(const NcclLibrary& nccl) : nccl_(nccl) {}
  void add(NcclCall call) { calls_.push_back(std::move(call)); }
  bool empty() const noexcept { return calls_.empty(); }
  // Makes them, up to the first that is refused. If a thread left a group open, NCCL would hold back everything that
  // the thread gives it later, for any communicator.
  ncclResult_t operator()() const;

 private:
  const NcclLibrary& nccl_;
  std::vector<NcclCall> calls_;
};

}  // namespace col::nccl_backend

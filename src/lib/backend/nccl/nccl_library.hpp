// The entry points of NCCL that are used here, looked up at run time.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

#include <col/backend.hpp>

namespace col::nccl_backend {

// Members have the names of nccl.h without the nccl.
struct NcclLibrary {
  // Loads the library that COL_NCCL_LIBRARY names, else libnccl.so.2 from the places of the dynamic linker or the CUDA
  // toolkit. Throws unavailable if it is not found (with what was tried), or has a version that cannot be used.
  explicit NcclLibrary(const BackendModule::Environment& environment);

  decltype(&::ncclGetVersion) GetVersion;
  decltype(&::ncclGetErrorString) GetErrorString;
  decltype(&::ncclGetLastError) GetLastError;
  decltype(&::ncclGetUniqueId) GetUniqueId;
  decltype(&::ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&::ncclCommFinalize) CommFinalize;
  decltype(&::ncclCommDestroy) CommDestroy;
  decltype(&::ncclCommAbort) CommAbort;
  decltype(&::ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&::ncclRedOpCreatePreMulSum) RedOpCreatePreMulSum;
  decltype(&::ncclRedOpDestroy) RedOpDestroy;
  decltype(&::ncclAllReduce) AllReduce;
  decltype(&::ncclReduce) Reduce;
  decltype(&::ncclBroadcast) Broadcast;
  decltype(&::ncclAllGather) AllGather;
  decltype(&::ncclReduceScatter) ReduceScatter;
  decltype(&::ncclSend) Send;
  decltype(&::ncclRecv) Recv;
  decltype(&::ncclGroupStart) GroupStart;
  decltype(&::ncclGroupEnd) GroupEnd;
  decltype(&::ncclMemAlloc) MemAlloc;
  decltype(&::ncclMemFree) MemFree;
  // From 2.27 on; null before.
  decltype(&::ncclCommWindowRegister) CommWindowRegister = nullptr;
  decltype(&::ncclCommWindowDeregister) CommWindowDeregister = nullptr;
  // From 2.28 on; null before.
  decltype(&::ncclAlltoAll) AlltoAll = nullptr;
  decltype(&::ncclGather) Gather = nullptr;
  decltype(&::ncclScatter) Scatter = nullptr;
  // From 2.28.7 on; null before. The type is written out, because older headers do not declare it.
  ncclResult_t (*CommRevoke)(ncclComm_t comm, int flags) = nullptr;

  int version = 0;   // 22809 is 2.28.9
  std::string path;  // as it was loaded

  // Why it cannot connect ranks that share a GPU; empty if it can.
  std::string why_alone() const;

  std::string version_text() const;

  // Settings from the environment, which NCCL reads by itself.
  bool is_told_to_share = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1
  bool has_most_ctas = false;     // NCCL_MAX_CTAS
};

}  // namespace col::nccl_backend

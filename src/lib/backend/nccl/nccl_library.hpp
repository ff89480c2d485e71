// The entry points of NCCL that are used here, found at run time.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

#include <col/backend.hpp>

namespace col::nccl_backend {

// Members are called as in nccl.h, less the nccl.
struct NcclLibrary {
  // Loads what COL_NCCL_LIBRARY names, else libnccl.so.2 from where the dynamic linker or the CUDA toolkit has it.
  // Throws unavailable: not found (with what was tried), of a version that does not serve.
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
  // From 2.28.7 on; null before. Spelt out, as older headers do not declare it.
  ncclResult_t (*CommRevoke)(ncclComm_t comm, int flags) = nullptr;

  int version = 0;   // 22809 is 2.28.9
  std::string path;  // as it was loaded

  // Why it cannot connect ranks that are on one GPU; empty when it can.
  std::string why_alone() const;

  std::string version_text() const;

  // What it is told by the environment, which it reads by itself.
  bool is_told_to_share = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1
  bool has_most_ctas = false;     // NCCL_MAX_CTAS
};

}  // namespace col::nccl_backend

#include "backend/nccl/nccl_library.hpp"

#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/nccl/shared_library.hpp"

namespace col::nccl_backend {
namespace {

constexpr int kOldest = 21900;
constexpr int kHasWindows = 22700;
constexpr int kHasMoreCollectives = 22800;
constexpr int kHasRevoke = 22807;
constexpr int kSharesGpus = 23003;
constexpr int kNextMajor = 30000;  // whose interface nobody knows yet

std::vector<std::string> candidates(const BackendModule::Environment& environment) {
  if (auto named = environment("COL_NCCL_LIBRARY")) return {*std::move(named)};
  return {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
}

}  // namespace

NcclLibrary::NcclLibrary(const BackendModule::Environment& environment) {
  const SharedLibrary library("NCCL", candidates(environment));
  path = library.path();
  library.bind("ncclGetVersion", GetVersion);
  if (GetVersion(&version) != ncclSuccess || version < kOldest || version >= kNextMajor)
    throw Error(ErrorCode::unavailable,
                fmt::format("the NCCL in {} is version {}, and 2.19 to 2.x serve; name another with COL_NCCL_LIBRARY",
                            path, version_text()));
  is_told_to_share = environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1";
  has_most_ctas = environment("NCCL_MAX_CTAS").has_value();
  library.bind("ncclGetErrorString", GetErrorString);
  library.bind("ncclGetLastError", GetLastError);
  library.bind("ncclGetUniqueId", GetUniqueId);
  library.bind("ncclCommInitRankConfig", CommInitRankConfig);
  library.bind("ncclCommFinalize", CommFinalize);
  library.bind("ncclCommDestroy", CommDestroy);
  library.bind("ncclCommAbort", CommAbort);
  library.bind("ncclCommGetAsyncError", CommGetAsyncError);
  library.bind("ncclRedOpCreatePreMulSum", RedOpCreatePreMulSum);
  library.bind("ncclRedOpDestroy", RedOpDestroy);
  library.bind("ncclAllReduce", AllReduce);
  library.bind("ncclReduce", Reduce);
  library.bind("ncclBroadcast", Broadcast);
  library.bind("ncclAllGather", AllGather);
  library.bind("ncclReduceScatter", ReduceScatter);
  library.bind("ncclSend", Send);
  library.bind("ncclRecv", Recv);
  library.bind("ncclGroupStart", GroupStart);
  library.bind("ncclGroupEnd", GroupEnd);
  library.bind("ncclMemAlloc", MemAlloc);
  library.bind("ncclMemFree", MemFree);
  if (version < kHasWindows) return;
  library.bind("ncclCommWindowRegister", CommWindowRegister);
  library.bind("ncclCommWindowDeregister", CommWindowDeregister);
  if (version < kHasMoreCollectives) return;
  library.bind("ncclAlltoAll", AlltoAll);
  library.bind("ncclGather", Gather);
  library.bind("ncclScatter", Scatter);
  if (version < kHasRevoke) return;
  library.bind("ncclCommRevoke", CommRevoke);
}

std::string NcclLibrary::why_alone() const {
  if (version < kSharesGpus)
    return fmt::format("NCCL {} serves one rank on each, and 2.30.3 is the first that serves more", version_text());
  if (!is_told_to_share)
    return fmt::format("NCCL {} serves several on one only with NCCL_MULTI_RANK_GPU_ENABLE=1", version_text());
  return "";
}

std::string NcclLibrary::version_text() const {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace col::nccl_backend

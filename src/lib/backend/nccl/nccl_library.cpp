#include "backend/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {
namespace {

constexpr int kOldest = 21900;
constexpr int kSharesGpus = 23003;
constexpr int kNextMajor = 30000;  // whose interface nobody knows yet

// The folders above this library, the nearest first: in site-packages, NCCL's wheel is in one of them.
std::vector<std::string> folders_above() {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> all;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&folders_above), &info) == 0 || info.dli_fname == nullptr) return all;
  std::string path = info.dli_fname;
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0 && all.size() < kMost;
       slash = path.rfind('/')) {
    path.resize(slash);
    all.push_back(path);
  }
  return all;
}

std::vector<std::string> candidates(const backend::Module::Environment& environment) {
  if (auto named = environment("COL_NCCL_LIBRARY")) return {*std::move(named)};
  std::vector<std::string> all{"libnccl.so.2"};
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto home = environment(name); home && !home->empty()) all.push_back(*home + "/lib64/libnccl.so.2");
  }
  all.emplace_back("/usr/local/cuda/lib64/libnccl.so.2");
  for (const std::string& folder : folders_above()) {
    const std::string wheel = folder + "/nvidia/nccl/lib/libnccl.so.2";
    if (::access(wheel.c_str(), R_OK) == 0) all.push_back(wheel);
  }
  return all;
}

// The names of a list that are there, in NCCL's words, which take a name for a prefix otherwise: "=eth0,eth1". Empty if
// there are none: a port of UCX's is no interface.
std::string interfaces_of(const std::string& list) {
  std::string all;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (!name.empty() && ::if_nametoindex(name.c_str()) != 0) all += (all.empty() ? "=" : ",") + name;
    begin = end + 1;
  }
  return all;
}

// It wins over what a communicator is told: NCCL would wait inside its calls, for a rank that may never come, where col
// thinks that it does not; or the other way round.
void require_own_form(const backend::Module::Environment& environment, bool is_blocking) {
  const auto told = environment("NCCL_COMM_BLOCKING");
  if (!told) return;
  const long form = std::strtol(told->c_str(), nullptr, 0);
  if (form == 1 && !is_blocking)
    throw Error(
        ErrorCode::unavailable,
        fmt::format("NCCL_COMM_BLOCKING={} makes NCCL wait inside its calls, where no deadline of col's holds and a "
                    "rank that never calls hangs all; unset it, or set COL_NCCL_BLOCKING=on, too",
                    *told));
  if (form == 0 && is_blocking)
    throw Error(ErrorCode::unavailable,
                fmt::format("NCCL_COMM_BLOCKING={} contradicts COL_NCCL_BLOCKING=on; unset one of them", *told));
}

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

NcclLibrary::NcclLibrary(const backend::Module::Environment& environment)
    : library("NCCL", candidates(environment)),
      is_told_to_share(environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1"),
      has_most_ctas(environment("NCCL_MAX_CTAS").has_value()),
      is_blocking(environment("COL_NCCL_BLOCKING") == "on") {
  require_own_form(environment, is_blocking);
  // NCCL reads its own variables alone, at its first call.
  const std::string interfaces = interfaces_of(environment("COL_SOCKET_IFNAME").value_or(""));
  if (!interfaces.empty() && !environment("NCCL_SOCKET_IFNAME")) ::setenv("NCCL_SOCKET_IFNAME", interfaces.c_str(), 0);
}

namespace {

bool is_refusal(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

}  // namespace

ncclResult_t Together::operator()() const {
  ncclResult_t result = nccl_.GroupStart();
  if (is_refusal(result)) return result;
  for (std::size_t i = 0; i < calls_.size() && !is_refusal(result); ++i) result = calls_[i]();
  const ncclResult_t ended = nccl_.GroupEnd();
  return is_refusal(result) ? result : ended;
}

int NcclLibrary::require_version() const {
  int found = 0;
  if (GetVersion(&found) == ncclSuccess && found >= kOldest && found < kNextMajor) return found;
  throw Error(ErrorCode::unavailable,
              fmt::format("the NCCL in {} is version {}, and 2.19 to 2.x serve; name another with COL_NCCL_LIBRARY",
                          path, text_of(found)));
}

std::string NcclLibrary::why_alone() const {
  if (version < kSharesGpus)
    return fmt::format("NCCL {} serves one rank on each, and 2.30.3 is the first that serves more", version_text());
  if (!is_told_to_share)
    return fmt::format("NCCL {} serves several on one only with NCCL_MULTI_RANK_GPU_ENABLE=1", version_text());
  return "";
}

std::string NcclLibrary::version_text() const {
  return text_of(version);
}

}  // namespace col::nccl_backend

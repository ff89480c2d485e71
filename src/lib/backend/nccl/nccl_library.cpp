#include "backend/nccl/nccl_library.hpp"

#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {
namespace {

constexpr int kOldest = 21900;
constexpr int kSharesGpus = 23003;
constexpr int kNextMajor = 30000;  // whose interface nobody knows yet

std::vector<std::string> candidates(const BackendModule::Environment& environment) {
  if (auto named = environment("COL_NCCL_LIBRARY")) return {*std::move(named)};
  return {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
}

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

NcclLibrary::NcclLibrary(const BackendModule::Environment& environment)
    : library("NCCL", candidates(environment)),
      is_told_to_share(environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1"),
      has_most_ctas(environment("NCCL_MAX_CTAS").has_value()) {}

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

#include "group/job_notice.hpp"

#include <fmt/format.h>

namespace col::group {
namespace {

std::string key(std::string_view group, int rank) {
  return fmt::format("notice/{}/{}", rank, group);
}

}  // namespace

void post_job_notice(Store& unscoped, std::string_view group, int rank, std::string_view job) {
  unscoped.set(key(group, rank), job);
}

void remove_job_notice(Store& unscoped, std::string_view group, int rank, std::string_view job) noexcept {
  try {
    if (unscoped.get(key(group, rank)) == job) unscoped.erase(key(group, rank));
  } catch (const std::exception&) {  // the store went with its job, and the notice with it
  }
}

std::optional<ForeignRank> find_foreign_rank(Store& unscoped, std::string_view group, int world_size,
                                             std::string_view job) {
  for (int rank = 0; rank < world_size; ++rank) {
    const auto notice = unscoped.get(key(group, rank));
    if (notice && *notice != job) return ForeignRank{rank, *notice};
  }
  return std::nullopt;
}

}  // namespace col::group

#include "group/join/job_notice.hpp"

#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/clock/this_process.hpp"
#include "group/join/host.hpp"
#include "json/json_text.hpp"

namespace col::group {
namespace {

using nlohmann::json;

std::string notice_key(std::string_view group, int rank) {
  return fmt::format("notice/{}/{}", rank, group);
}

std::string make_text(std::string_view job) {
  const json value{{"job", job},
                   {"pid", core::own_pid()},
                   {"boot_id", this_host().boot_id},
                   {"pid_namespace", this_host().pid_namespace}};
  return core::json_text(value);
}

}  // namespace

JobNotice::JobNotice(Store& unscoped, std::string_view group, int rank, std::string_view job)
    : unscoped_(unscoped), key_(notice_key(group, rank)), text_(make_text(job)) {}

void JobNotice::post() {
  if (std::exchange(is_posted_, true)) return;
  unscoped_.set(key_, text_);
}

void JobNotice::remove() noexcept {
  if (!is_posted_) return;
  try {
    if (unscoped_.get(key_) == text_) unscoped_.erase(key_);
  } catch (const std::exception&) {  // the store went with its job, and the notice with it
  }
}

std::optional<ForeignRank> find_foreign_rank(Store& unscoped, std::string_view group, int world_size, int own_rank,
                                             std::string_view job) {
  for (int rank = 0; rank < world_size; ++rank) {
    if (rank == own_rank) continue;
    const auto text = unscoped.get(notice_key(group, rank));
    const json value = text ? core::json_from(*text) : json();
    if (!value.is_object()) continue;
    const std::string other = value.value("job", std::string(job));
    if (other == job) continue;
    if (is_gone(value.value("pid", std::int64_t{0}), value.value("boot_id", ""), value.value("pid_namespace", "")))
      continue;
    return ForeignRank{rank, other};
  }
  return std::nullopt;
}

}  // namespace col::group

// Where a process stands in its job, from COL_* (docs/environment.md).
#include <climits>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/env.hpp"
#include "core/hash.hpp"
#include "group/host.hpp"

namespace col {
namespace {

namespace env = core::env;

constexpr int kMaxRanks = 1 << 24;

int get_int(std::string_view name, int least, int most, int fallback) {
  return static_cast<int>(env::get_int(name, least, most).value_or(fallback));
}

void require_together(std::string_view present, std::string_view absent) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} is set but {} is not; set both, or neither, or start the program with colrun", present, absent));
}

// Without colrun nobody made a control page: the first local rank does, beside the keys of a file store that all share.
std::string control_path(const ContextSpec& spec, std::string_view store_url) {
  constexpr std::string_view kScheme = "file://";
  if (!store_url.starts_with(kScheme)) return {};
  const auto id = core::Hash()
                      .add(spec.job_id)
                      .add(spec.restart_count)
                      .add(group::this_host().boot_id)
                      .add(group::this_host().pid_namespace)
                      .value();
  return fmt::format("{}/.control.{:016x}", store_url.substr(kScheme.size()), id);
}

void attach_control(ContextSpec& spec, std::string_view store_url) {
  if (const auto path = env::get("COL_CONTROL")) {
    spec.control = ControlPage::open(*path, spec.job_id);
    return;
  }
  const std::string path = control_path(spec, store_url);
  if (path.empty()) return;
  // Nobody said which ranks share this node: one record for each rank of the job fits every case.
  spec.local_rank = spec.rank;
  spec.local_world_size = spec.world_size;
  spec.control = ControlPage::open_or_create(path, spec.world_size, spec.job_id);
}

}  // namespace

ContextSpec ContextSpec::from_environment() {
  ContextSpec spec;
  spec.timeout = env::get_duration("COL_TIMEOUT").value_or(Duration::zero());
  const auto rank = env::get_int("COL_RANK", 0, kMaxRanks);
  const auto world = env::get_int("COL_WORLD_SIZE", 1, kMaxRanks);
  if (!rank && !world) return spec;
  if (!rank) require_together("COL_WORLD_SIZE", "COL_RANK");
  if (!world) require_together("COL_RANK", "COL_WORLD_SIZE");
  if (*rank >= *world)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("COL_RANK={} is not below COL_WORLD_SIZE={}; ranks count from 0 to {}", *rank, *world, *world - 1));
  spec.rank = static_cast<int>(*rank);
  spec.world_size = static_cast<int>(*world);
  spec.local_world_size = get_int("COL_LOCAL_WORLD_SIZE", 1, kMaxRanks, spec.world_size);
  spec.local_rank = get_int("COL_LOCAL_RANK", 0, spec.local_world_size - 1, spec.rank % spec.local_world_size);
  spec.job_id = env::get("COL_JOB_ID").value_or("");
  spec.restart_count = get_int("COL_RESTART_COUNT", 0, INT_MAX, 0);
  const auto url = env::get("COL_STORE");
  if (!url && spec.world_size > 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("COL_WORLD_SIZE={} but COL_STORE is not set; set it to file:///a/directory/all/ranks/share, "
                    "or start the program with colrun",
                    spec.world_size));
  if (url) spec.store = open_store(*url);
  if (spec.world_size > 1) attach_control(spec, *url);
  return spec;
}

}  // namespace col

// The place of a process in its job: from COL_* or another launcher's variables (docs/environment.md), or from a store
// alone.
#include <chrono>
#include <climits>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/env.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "group/adopt/adopted_job.hpp"
#include "group/adopt/launchers.hpp"
#include "group/join/host.hpp"
#include "group/join/host_page.hpp"
#include "group/join/job_meeting.hpp"
#include "store/base/text.hpp"

namespace col {
namespace {

namespace env = core::env;

constexpr int kMaxRanks = 1 << 24;
constexpr Duration kMeetingTimeout = std::chrono::minutes(5);

int get_int(std::string_view name, int least, int most, int fallback) {
  return static_cast<int>(env::get_int(name, least, most).value_or(fallback));
}

void require_together(std::string_view present, std::string_view absent) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} is set but {} is not; set both, or neither, or start the program with colrun", present, absent));
}

// What a hand, or a launcher's mistake, may have set so that it cannot be.
void require_within(std::string_view part, int value, std::string_view whole, int most, bool counts_from_0) {
  if (counts_from_0 ? value < most : value <= most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}={} is {} {}={}; correct what sets them, or start the program with colrun", part, value,
                          counts_from_0 ? "not below" : "above", whole, most));
}

// Without colrun nobody made a control page: the first local rank does, beside the keys of a file store that all share.
// `node` is the launcher's name for this host, as it may take one host for several. Ranks that were told of different
// worlds have different pages: they are told so when they meet.
std::string control_path(const ContextSpec& spec, std::string_view store_url, std::string_view node) {
  constexpr std::string_view kScheme = "file://";
  if (!store_url.starts_with(kScheme)) return {};
  const auto id = core::Hash()
                      .add(spec.job_id)
                      .add(spec.restart_count)
                      .add(spec.world_size)
                      .add(group::this_host().boot_id)
                      .add(group::this_host().pid_namespace)
                      .add(node)
                      .value();
  // The store was opened by this URL, so it can be decoded.
  const std::string directory = store::percent_decoded(store_url.substr(kScheme.size())).value_or("");
  return fmt::format("{}/.control.{:016x}", directory, id);
}

// Where nobody said which ranks share this host, one record for each rank of the job fits every case.
void count_all_as_local(ContextSpec& spec) {
  spec.local_rank = spec.rank;
  spec.local_world_size = spec.world_size;
}

// `place` is null when COL_* were believed.
void attach_control(ContextSpec& spec, std::string_view store_url, const group::adopt::LaunchedRank* place) {
  if (const auto path = env::get("COL_CONTROL")) {
    spec.control = ControlPage::open(*path, spec.job_id);
    return;
  }
  const std::string path = control_path(spec, store_url, place == nullptr ? "" : place->node);
  if (path.empty()) return;
  if (place == nullptr) count_all_as_local(spec);
  spec.control = ControlPage::open_or_create(path, spec.local_world_size, spec.job_id);
}

ContextSpec adopt(ContextSpec spec, const group::adopt::LaunchedRank& place) {
  spec.launcher = place.launcher;
  spec.rank = place.rank;
  spec.world_size = place.world_size;
  spec.local_rank = place.local_rank;
  spec.local_world_size = place.local_world_size;
  if (spec.local_world_size == 0) count_all_as_local(spec);
  spec.restart_count = place.restart_count;
  if (const auto url = env::get("COL_STORE")) {
    spec.job_id = env::get("COL_JOB_ID").value_or(group::adopt::job_name(place));
    spec.store = open_store(*url);
    if (spec.world_size > 1) attach_control(spec, *url, &place);
  } else if (spec.world_size > 1) {
    group::adopt::join_job(place, spec);
  }
  return spec;
}

ContextSpec adopt_if_told(ContextSpec spec) {
  if (const auto place = group::adopt::find_launched_rank(env::get)) return adopt(std::move(spec), *place);
  if (const std::string why = group::adopt::why_alone(env::get); !why.empty()) core::log::warn("{}", why);
  return spec;
}

}  // namespace

ContextSpec ContextSpec::from_environment() {
  ContextSpec spec;
  spec.timeout = env::get_duration("COL_TIMEOUT").value_or(Duration::zero());
  auto rank = env::get_int("COL_RANK", 0, kMaxRanks);
  if (const auto spare = env::get_int("COL_SPARE", 0, kMaxRanks)) {
    if (rank)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("COL_RANK={} and COL_SPARE={} are both set, and a spare has no rank before the others "
                              "take it in; unset one of them",
                              *rank, *spare));
    spec.is_spare = true;
    rank = spare;
  }
  const auto world = env::get_int("COL_WORLD_SIZE", 1, kMaxRanks);
  // The pods of an Indexed Job are given their number, but have to be told by hand how many there are.
  if (!rank && (!world || env::get("JOB_COMPLETION_INDEX"))) return adopt_if_told(std::move(spec));
  if (!rank) require_together("COL_WORLD_SIZE", "COL_RANK");
  if (!world) require_together(spec.is_spare ? "COL_SPARE" : "COL_RANK", "COL_WORLD_SIZE");
  if (*rank >= *world && !spec.is_spare)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("COL_RANK={} is not below COL_WORLD_SIZE={}; ranks count from 0 to {}", *rank, *world, *world - 1));
  spec.launcher = "colrun";
  spec.rank = static_cast<int>(*rank);
  spec.world_size = static_cast<int>(*world);
  spec.local_world_size = get_int("COL_LOCAL_WORLD_SIZE", 1, kMaxRanks, spec.world_size);
  spec.local_rank = get_int("COL_LOCAL_RANK", 0, kMaxRanks, spec.rank % spec.local_world_size);
  require_within("COL_LOCAL_WORLD_SIZE", spec.local_world_size, "COL_WORLD_SIZE", spec.world_size, false);
  if (!spec.is_spare)
    require_within("COL_LOCAL_RANK", spec.local_rank, "COL_LOCAL_WORLD_SIZE", spec.local_world_size, true);
  if (const auto nodes = env::get_int("COL_NNODES", 1, kMaxRanks)) {
    require_within("COL_NNODES", static_cast<int>(*nodes), "COL_WORLD_SIZE", spec.world_size, false);
    require_within("COL_NODE_RANK", get_int("COL_NODE_RANK", 0, kMaxRanks, 0), "COL_NNODES", static_cast<int>(*nodes),
                   true);
  }
  spec.job_id = env::get("COL_JOB_ID").value_or("");
  spec.restart_count = get_int("COL_RESTART_COUNT", 0, INT_MAX, 0);
  const auto url = env::get("COL_STORE");
  if (!url && (spec.world_size > 1 || spec.is_spare))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("COL_WORLD_SIZE={} but COL_STORE is not set; set it to file:///a/directory/all/ranks/share, "
                    "or start the program with colrun",
                    spec.world_size));
  if (url) spec.store = open_store(*url);
  if (spec.world_size > 1) attach_control(spec, *url, nullptr);
  return spec;
}

ContextSpec ContextSpec::meet(std::shared_ptr<Store> store, int rank, int world_size, std::string job_id,
                              Duration timeout, Interrupt interrupt, Duration spent) {
  if (world_size < 1 || world_size > kMaxRanks)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a world size of {} makes no job; it must be from 1 to {}", world_size, kMaxRanks));
  if (rank < 0 || rank >= world_size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {} does not fit a world size of {}; ranks count from 0 to {}", rank, world_size,
                            world_size - 1));
  if (timeout < Duration::zero())
    throw Error(ErrorCode::invalid_argument, "the timeout of a meeting must not be negative; zero means 5 minutes");
  if (!store && world_size > 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} ranks need a store to meet; pass one that all of them reach: open_store(), or "
                            "make_memory_store() for ranks that are threads",
                            world_size));
  ContextSpec spec;
  spec.rank = rank;
  spec.world_size = world_size;
  spec.job_id = std::move(job_id);
  spec.store = std::move(store);
  spec.timeout = timeout;
  spec.interrupt = std::move(interrupt);
  if (world_size == 1) return spec;
  const Deadline deadline = Deadline::after(timeout > Duration::zero() ? timeout : kMeetingTimeout, spent);
  const auto scope = group::meeting_scope(spec);
  try {
    group::share_host_page(spec, group::meet_job(spec, *scope, deadline), *scope, deadline);
  } catch (...) {
    if (const auto interruption = WaitContext::take_interruption()) std::rethrow_exception(interruption);
    throw;
  }
  return spec;
}

}  // namespace col

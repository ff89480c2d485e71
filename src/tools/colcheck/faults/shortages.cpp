// No room for shared memory, no descriptors, no store, or a stranger in its place: a clean error on every rank in time,
// or success; never SIGBUS, never a hang.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include <col/store.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr double kShortageEpsilon = 1;

// One number of ranks is enough.
std::vector<int> fewest_ranks(const Selection& selection) {
  std::vector<int> sizes = drill_ranks(selection);
  if (!sizes.empty()) sizes.resize(1);
  return sizes;
}

bool is_one_of(const Report& report, std::initializer_list<ErrorCode> codes) {
  return std::any_of(codes.begin(), codes.end(), [&](ErrorCode code) { return report.code == to_string(code); });
}

// Empty if the report came in time.
std::string problem_with_time(const JobEnd& end, int rank, Duration timeout) {
  const double most = std::chrono::duration<double>(timeout).count() + kShortageEpsilon;
  return end.of(rank).report->seconds > most ? describe(end, rank) + "; that is too late" : "";
}

// ---- shm_full: Case::variant 0: the kernel has no memfd_create(), and /dev/shm is smaller than a group needs. 1: it
// is full after a few groups; then the next one fails, and those that stand go on. 2: files may not become long enough
// (ulimit -f). 3: they may hardly have a byte, so that not even a key of the store fits. 4: as 0, but /dev/shm has
// room: success, and nothing is left in it.

enum Room : std::uint64_t { kTooSmall, kFillsUp, kShortFiles, kNoFiles, kRoomy, kRooms };
// More than enough for one group of four, not for thirty.
constexpr std::size_t kSmallBytes = 64 << 10, kFewGroupsBytes = 4 << 20, kRoomyBytes = 64 << 20;
constexpr int kManyGroups = 30;
constexpr Duration kShmTimeout = std::chrono::seconds(3);

void add_shm_full(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "shm_full", fewest_ranks(selection), all);
  for (const std::string& backend : drills.backends()) {
    for (std::uint64_t way = 0; way < kRooms; ++way) {
      // Others than shm use shared memory for nothing; but their ranks meet by files as well.
      if (backend != to_string(Backend::shm) && way != kNoFiles) continue;
      Case& c = drills.add(backend, Primitive::allreduce);
      c.seed = mix(selection.seed, way);
      c.variant = way;
    }
  }
}

// The same on all ranks: if one rank cannot get it, the others cannot either, and get an error that says why.
std::string problem_with_room(const JobEnd& end, const Case& c) {
  for (int rank = 0; rank < c.ranks; ++rank) {
    std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem;
    const Report& report = *end.of(rank).report;
    // Who comes second may hear it from the first: "rank 3 ended the group (resource: …".
    const bool is_told =
        is_one_of(report, {ErrorCode::aborted}) && report.message.find("(resource: ") != std::string::npos;
    if (!report.good() && !is_told && !is_one_of(report, {ErrorCode::resource, ErrorCode::io}))
      return describe(end, rank) + "; expected resource, io or success";
    problem = problem_with_time(end, rank, kShmTimeout);
    if (!problem.empty()) return problem;
    const bool small = c.variant == kTooSmall || c.variant == kFillsUp || c.variant == kShortFiles;
    if (small && report.good()) return describe(end, rank) + "; expected resource or io";
    if (c.variant == kFillsUp && report.later != "success")
      return fmt::format("{}; a call on a group that stood before ended with {}, expected success", describe(end, rank),
                         report.later);
  }
  return c.variant == kRoomy ? problem_with_success(end) : "";
}

Finding run_shm_full(Rank& /*rank*/, const Case& c) {
  Drill drill{.c = c};
  JobSpec spec{.timeout = kShmTimeout};
  if (c.variant == kShortFiles) drill.file_bytes = static_cast<std::int64_t>(kSmallBytes);
  if (c.variant == kNoFiles) drill.file_bytes = 1;
  if (c.variant == kFillsUp) drill.more_groups = kManyGroups;
  std::unique_ptr<PrivateShm> shm;
  if (c.variant == kTooSmall || c.variant == kFillsUp || c.variant == kRoomy) {
    drill.without_memfd = true;
    try {
      shm = std::make_unique<PrivateShm>(c.variant == kTooSmall  ? kSmallBytes
                                         : c.variant == kFillsUp ? kFewGroupsBytes
                                                                 : kRoomyBytes);
    } catch (const std::system_error& error) {
      return Finding::skip(error.what());
    }
    spec.shm = shm.get();
    drill.shm_holder = shm->holder();
  }
  Job job(spec_of(drill, spec));
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with_room(end, c), problem_with_traces(end)}));
}

// ---- descriptor_limit: one rank may have only a few descriptors (ulimit -n): `resource` on that rank and an error on
// the others, or success where they suffice. Case::variant is how many it may have beyond those that it starts with; or
// kStanding: a group that stands needs none, not even when a call takes so long that a rank looks for the reason.

constexpr Duration kDescriptorTimeout = std::chrono::seconds(1);
// So many suffice for a group of four on any backend.
constexpr std::uint64_t kEnoughShortages = 40, kStanding = 1000;
constexpr int kSlowMs = 400;

void add_descriptor_limit(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "descriptor_limit", fewest_ranks(selection), all);
  std::vector<std::uint64_t> limits = {0, 4, 8, kEnoughShortages, kStanding};
  if (drills.full()) {
    limits.clear();
    for (std::uint64_t limit = 0; limit <= 20; ++limit) limits.push_back(limit);
    limits.insert(limits.end(), {kEnoughShortages, kStanding});
  }
  for (const std::string& backend : drills.backends()) {
    for (const std::uint64_t limit : limits) drills.add(backend, Primitive::allreduce).variant = limit;
  }
}

std::string problem_with_poor_rank(const JobEnd& end, const Case& c, int poor) {
  std::string problem = problem_with_end(end, poor);
  if (!problem.empty()) return problem;
  const Report& own = *end.of(poor).report;
  // Without a single one it cannot even look for the others.
  if (own.good()) return c.variant == 0 ? describe(end, poor) + "; expected resource" : problem_with_success(end);
  if (c.variant >= kEnoughShortages || !is_one_of(own, {ErrorCode::resource}))
    return describe(end, poor) + (c.variant >= kEnoughShortages ? "; expected success" : "; expected resource");
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank == poor) continue;
    problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem;
    const Report& report = *end.of(rank).report;
    if (report.good() || report.code == "exception" || report.code == "wrong_data")
      return describe(end, rank) + "; expected an error";
    problem = problem_with_time(end, rank, kDescriptorTimeout);
    if (!problem.empty()) return problem;
  }
  return {};
}

Finding run_descriptor_limit(Rank& /*rank*/, const Case& c) {
  const int poor = victim_of(c);
  Drill drill{.c = c, .odd = poor};
  drill.descriptors = c.variant == kStanding ? 0 : static_cast<int>(c.variant);
  drill.descriptors_late = c.variant == kStanding;
  if (c.variant == kStanding) drill.calls = 2;  // ranks that first talk to each other connect
  JobSpec spec{.timeout = kDescriptorTimeout};
  if (c.variant == kStanding) spec.fault = fmt::format("delay:rank={},ms={}", (poor + 1) % c.ranks, kSlowMs);
  Job job(spec_of(drill, spec));
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with_poor_rank(end, c, poor), problem_with_traces(end)}));
}

// ---- no_store: the directory by which ranks meet cannot be made (Case::variant 0), is removed before they meet (1),
// after their group stands (2), or before they make another one from it (3). A clean `io` error; a group that stands
// needs no directory, and neither does one that is made by what connects another.

enum Loss : std::uint64_t { kCannotBeMade, kGoneBefore, kGoneAfter, kGoneAfterNewGroup, kLosses };
constexpr Duration kStoreTimeout = std::chrono::seconds(2);

void add_no_store(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "no_store", fewest_ranks(selection), all);
  for (const std::string& backend : drills.backends()) {
    for (std::uint64_t way = 0; way < kLosses; ++way) {
      Case& c = drills.add(backend, Primitive::allreduce);
      c.seed = mix(selection.seed, way);
      c.variant = way;
    }
  }
}

// Somebody else's doing, in the middle of the job.
void remove_store(Job& job, const char* point) {
  job.await_point_of_all(point);
  std::error_code ignored;
  std::filesystem::remove_all(job.store_directory(), ignored);
  job.go_on_all();
}

std::string problem_with_io(const JobEnd& end, const Case& c) {
  for (int rank = 0; rank < c.ranks; ++rank) {
    std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem + "; expected io";
    if (!is_one_of(*end.of(rank).report, {ErrorCode::io})) return describe(end, rank) + "; expected io";
    problem = problem_with_time(end, rank, kStoreTimeout);
    if (!problem.empty()) return problem;
  }
  return {};
}

Finding run_no_store(Rank& /*rank*/, const Case& c) {
  Drill drill{.c = c};
  drill.asks_to_join = c.variant == kGoneBefore;
  drill.asks_to_call = c.variant == kGoneAfter || c.variant == kGoneAfterNewGroup;
  drill.more_groups = c.variant == kGoneAfterNewGroup ? 1 : 0;
  JobSpec spec{.timeout = kStoreTimeout};
  // Not even root can make a directory there.
  if (c.variant == kCannotBeMade) spec.store = "file:///dev/null/store";
  Job job(spec_of(drill, spec));
  if (drill.asks_to_join) remove_store(job, "ready");
  if (drill.asks_to_call) remove_store(job, "call");
  const JobEnd end = job.finish();
  std::string problem = c.variant == kGoneAfter ? problem_with_success(end) : problem_with_io(end, c);
  // Over UCX, and where the kernel cannot take memory with an error (before Linux 5.14), they meet by the directory,
  // too.
  if (c.variant == kGoneAfterNewGroup && !problem.empty()) problem = problem_with_success(end);
  return Finding::of(first_of({problem, problem_with_traces(end)}));
}

// ---- taken_port: COL_STORE names a TCP port at which a stranger listens, who accepts and never says a word.

constexpr Duration kPortTimeout = std::chrono::seconds(1);

// The kernel accepts for it; nobody ever reads.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    constexpr int kBacklog = 64;
    if (!socket_ || ::bind(socket_.get(), generic, length) != 0 || ::listen(socket_.get(), kBacklog) != 0 ||
        ::getsockname(socket_.get(), generic, &length) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot listen on 127.0.0.1");
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  tools::UniqueFd socket_;
  int port_ = 0;
};

void add_taken_port(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "taken_port", fewest_ranks(selection), all);
  for (const std::string& backend : drills.backends()) {
    if (is_over_hosts(backend)) continue;  // the port is one of this host
    const std::size_t before = all.size();
    drills.add(backend, Primitive::barrier).seed = mix(selection.seed, before);
  }
}

Finding run_taken_port(Rank& /*rank*/, const Case& c) {
  const Stranger stranger;
  Job job(spec_of({.c = c}, {.timeout = kPortTimeout,
                             .environment = {"COL_STORE_TOKEN=" + make_store_token()},
                             .store = fmt::format("tcp://127.0.0.1:{}", stranger.port())}));
  const JobEnd end = job.finish();
  for (int rank = 0; rank < c.ranks; ++rank) {
    std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return Finding::fail(problem);
    if (!is_one_of(*end.of(rank).report,
                   {ErrorCode::timeout, ErrorCode::io, ErrorCode::mismatch, ErrorCode::unavailable}))
      return Finding::fail(describe(end, rank) + "; expected timeout, io, mismatch or unavailable");
    problem = problem_with_time(end, rank, kPortTimeout);
    if (!problem.empty()) return Finding::fail(problem);
  }
  return Finding::of(problem_with_traces(end));
}

}  // namespace

const Property kFaultShmFull{"shm_full", "no room for shared memory, or for files: a clean error, never SIGBUS",
                             Property::Kind::fault, &add_shm_full, &run_shm_full};
const Property kFaultDescriptorLimit{"descriptor_limit",
                                     "a rank without descriptors gets resource, the others an error, and none hangs",
                                     Property::Kind::fault, &add_descriptor_limit, &run_descriptor_limit};
const Property kFaultNoStore{"no_store", "a store that cannot be made, or is removed: a clean error in time",
                             Property::Kind::fault, &add_no_store, &run_no_store};
const Property kFaultTakenPort{"taken_port", "a store's port that belongs to a silent stranger: a clean error in time",
                               Property::Kind::fault, &add_taken_port, &run_taken_port};

}  // namespace col::colcheck

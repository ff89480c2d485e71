#include "group/join/host_page.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/clock/this_process.hpp"
#include "core/duration.hpp"
#include "core/job/page.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

// Where the page is.
struct PagePlace {
  std::int64_t pid = 0;
  int descriptor = -1;
  std::string failure = {};  // the error because of which there is none
};

template <class Visit>
void fields(PagePlace& place, Visit& visit) {
  auto& [pid, descriptor, failure] = place;
  visit("pid", pid);
  visit("descriptor", descriptor);
  visit("failure", failure);
}

// The page with its file, which stays open: so coljob finds it, among the descriptors of every rank.
std::shared_ptr<ControlPage> with_file(core::UniqueFd file, const std::string& identity) {
  struct PageAndFile {
    core::UniqueFd file;
    std::shared_ptr<ControlPage> page;
  };
  auto page = ControlPage::open(fmt::format("/proc/self/fd/{}", file.get()), identity);
  auto both = std::make_shared<PageAndFile>(PageAndFile{std::move(file), std::move(page)});
  return {both, both->page.get()};
}

class HostPage final : public WaitObserver {
 public:
  HostPage(const ContextSpec& spec, const Roster& roster, int maker, Store& scope, const Deadline& deadline)
      : spec_(spec),
        roster_(roster),
        scope_(scope),
        wait_(deadline, nullptr, nullptr, this, &spec.interrupt),
        maker_(maker),
        place_key_(fmt::format("page/{}/{:x}", maker, roster.token)),
        identity_(fmt::format("{} {:016x}", spec.job_id, roster.token)) {}

  std::shared_ptr<ControlPage> make(const std::vector<int>& neighbours);
  std::shared_ptr<ControlPage> make_alone();
  std::shared_ptr<ControlPage> open();

  bool on_slow(Duration waited) override;
  void on_timeout(Duration budget) override;

 private:
  void await(int rank, std::string what) {
    awaited_ = rank;
    what_ = std::move(what);
  }
  core::ProcessId process(int rank) const {
    return core::ProcessId::from_word(roster_.members[static_cast<std::size_t>(rank)].process_nonce);
  }
  void tell(const PagePlace& place) { scope_.set(place_key_, core::json_line(place)); }

  const ContextSpec& spec_;
  const Roster& roster_;
  Store& scope_;
  WaitContext wait_;
  const int maker_;
  const std::string place_key_;
  // The page calls its job so: a descriptor that has become something else is then no page of this meeting.
  const std::string identity_;
  int awaited_ = 0;  // the rank that must do …
  std::string what_ = {};
};

std::shared_ptr<ControlPage> HostPage::make(const std::vector<int>& neighbours) {
  PagePlace place{.pid = core::own_pid()};
  std::shared_ptr<ControlPage> page;
  try {
    core::UniqueFd file = core::create_unnamed_page(static_cast<int>(neighbours.size()), identity_);
    place.descriptor = file.get();
    page = with_file(std::move(file), identity_);
  } catch (const Error& error) {
    place.failure = encode_error(error);
    tell(place);
    throw;
  }
  page->record(0).join(maker_);
  tell(place);
  for (std::size_t i = 1; i < neighbours.size(); ++i) {
    constexpr Duration kShortestPause = std::chrono::microseconds(50), kLongestPause = std::chrono::milliseconds(5);
    await(neighbours[i], "open the control page of this host");
    const RankRecord& record = page->record(static_cast<int>(i));
    for (Duration pause = kShortestPause; record.read().state == RankActivity::State::absent;
         pause = std::min(2 * pause, kLongestPause)) {
      wait_.check();
      core::sleep_for(pause);
    }
  }
  const store::CallLimit limit(kStoreTime);
  try {
    scope_.erase(place_key_);
  } catch (const std::exception&) {  // nobody reads it any more
  }
  return page;
}

// For a rank that is alone on its host. Without a descriptor, it is found by nobody, and serves as well.
std::shared_ptr<ControlPage> HostPage::make_alone() {
  try {
    auto page = with_file(core::create_unnamed_page(1, identity_), identity_);
    page->record(0).join(spec_.rank);
    return page;
  } catch (const Error&) {
    return ControlPage::in_memory(1);
  }
}

std::shared_ptr<ControlPage> HostPage::open() {
  await(maker_, "make the control page of this host");
  const auto place = decoded<PagePlace>(scope_.wait(place_key_, wait_), "place of a control page");
  const auto failed = [&](const Error& error) {
    return Error(error.code(),
                 fmt::format("rank {} cannot share the control page of rank {} (pid {}) on this host: {}", spec_.rank,
                             maker_, place.pid, error.message()),
                 {}, maker_, maker_);
  };
  if (!place.failure.empty())
    throw failed(decode_error(place.failure).value_or(Error(ErrorCode::internal, "its error cannot be read")));
  try {
    const std::string path = fmt::format("{}/fd/{}", core::process_directory(place.pid), place.descriptor);
    core::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    // Its reader says what is wrong with it.
    auto page = file ? with_file(std::move(file), identity_) : ControlPage::open(path, identity_);
    page->record(spec_.local_rank).join(spec_.rank);
    return page;
  } catch (const Error& error) {
    throw failed(error);
  }
}

bool HostPage::on_slow(Duration /*waited*/) {
  if (const auto lost = process(awaited_); !lost.alive()) throw lost_in_meeting(spec_, awaited_, lost);
  return false;
}

void HostPage::on_timeout(Duration budget) {
  throw Error(ErrorCode::timeout,
              fmt::format("rank {} of job '{}' (pid {}) did not {} in {}; look at what it prints, or allow more time",
                          awaited_, spec_.job_id, process(awaited_).pid(), what_, core::format_duration(budget)),
              {}, awaited_, awaited_);
}

}  // namespace

void share_host_page(ContextSpec& spec, const Roster& roster, Store& scope, const Deadline& deadline) {
  const PeerInfo& self = roster.members[static_cast<std::size_t>(spec.rank)].peer;
  const bool is_known = !self.boot_id.empty() && !self.pid_namespace.empty();
  std::vector<int> neighbours;
  for (const Member& member : roster.members) {
    const PeerInfo& peer = member.peer;
    const bool is_here = is_known && peer.boot_id == self.boot_id && peer.pid_namespace == self.pid_namespace;
    if (is_here || peer.rank == spec.rank) neighbours.push_back(peer.rank);
  }
  const int maker = neighbours.front();
  spec.local_rank = static_cast<int>(std::find(neighbours.begin(), neighbours.end(), spec.rank) - neighbours.begin());
  spec.local_world_size = static_cast<int>(neighbours.size());
  HostPage page(spec, roster, maker, scope, deadline);
  spec.control = neighbours.size() == 1 ? page.make_alone() : maker == spec.rank ? page.make(neighbours) : page.open();
}

}  // namespace col::group

#include "group/join/host_page.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <optional>
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

namespace col::group {
namespace {

std::string place_key(int maker) {
  return fmt::format("page/{}", maker);
}

// Where the page is.
struct PagePlace {
  std::uint64_t nonce = 0;  // of the rank that made it
  std::int64_t pid = 0;
  int descriptor = -1;
  std::string failure = {};  // the error because of which there is none
};

template <class Visit>
void fields(PagePlace& place, Visit& visit) {
  auto& [nonce, pid, descriptor, failure] = place;
  visit("nonce", nonce);
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
  HostPage(const ContextSpec& spec, const JobRoster& roster, Store& scope, const Deadline& deadline)
      : spec_(spec),
        roster_(roster),
        scope_(scope),
        wait_(deadline, nullptr, nullptr, this, &spec.interrupt),
        maker_(roster.host(spec.rank)),
        identity_(fmt::format("{} {:016x}", spec.job_id, roster.nonce(maker_))) {}

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
  void tell(const PagePlace& place) { scope_.set(place_key(maker_), core::json_line(place)); }

  const ContextSpec& spec_;
  const JobRoster& roster_;
  Store& scope_;
  WaitContext wait_;
  const int maker_;
  // What the page calls its job: a descriptor that has become something else is then no page of this meeting.
  const std::string identity_;
  int awaited_ = 0;  // the rank that must do …
  std::string what_ = {};
};

std::shared_ptr<ControlPage> HostPage::make(const std::vector<int>& neighbours) {
  PagePlace place{.nonce = roster_.nonce(maker_), .pid = core::own_pid()};
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
  return page;
}

// Of a rank that is alone on its host. Without a descriptor, it is found by nobody, and serves as well.
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
  const auto place =
      read_own(scope_, place_key(maker_), wait_, [&](const std::string& text) -> std::optional<PagePlace> {
        auto found = decoded<PagePlace>(text, "place of a control page");
        if (found.nonce == roster_.nonce(maker_)) return found;
        return std::nullopt;
      });
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
    // What is wrong with it is said by who reads it.
    auto page = file ? with_file(std::move(file), identity_) : ControlPage::open(path, identity_);
    page->record(spec_.local_rank).join(spec_.rank);
    return page;
  } catch (const Error& error) {
    throw failed(error);
  }
}

bool HostPage::on_slow(Duration /*waited*/) {
  if (const auto process = roster_.process(awaited_); !process.alive()) throw lost_in_meeting(spec_, awaited_, process);
  return false;
}

void HostPage::on_timeout(Duration budget) {
  throw Error(
      ErrorCode::timeout,
      fmt::format("rank {} of job '{}' (pid {}) did not {} in {}; look at what it prints, or allow more time", awaited_,
                  spec_.job_id, roster_.process(awaited_).pid(), what_, core::format_duration(budget)),
      {}, awaited_, awaited_);
}

}  // namespace

void share_host_page(ContextSpec& spec, const JobRoster& roster, Store& scope, const Deadline& deadline) {
  const int maker = roster.host(spec.rank);
  std::vector<int> neighbours;
  for (int rank = maker; rank < spec.world_size; ++rank) {
    if (roster.host(rank) == maker) neighbours.push_back(rank);
  }
  spec.local_rank = static_cast<int>(std::find(neighbours.begin(), neighbours.end(), spec.rank) - neighbours.begin());
  spec.local_world_size = static_cast<int>(neighbours.size());
  HostPage page(spec, roster, scope, deadline);
  spec.control = neighbours.size() == 1 ? page.make_alone() : maker == spec.rank ? page.make(neighbours) : page.open();
}

}  // namespace col::group

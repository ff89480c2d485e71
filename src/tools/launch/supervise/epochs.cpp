#include "launch/supervise/epochs.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include <col/error.hpp>

#include "json/json_fields.hpp"

namespace col::launch {

Places::Places(const Rules& rules) : rules_(rules), places_(static_cast<std::size_t>(rules.ranks + rules.spares)) {
  for (auto place = static_cast<std::size_t>(rules.ranks); place < places_.size(); ++place)
    places_[place].standing = Standing::asleep;
}

void Places::on_taken(int place) {
  Place& taken = places_[static_cast<std::size_t>(place)];
  if (taken.standing == Standing::asleep) taken.standing = Standing::in;
}

void Places::on_ended(int place, End end, Time now) {
  Place& ended = places_[static_cast<std::size_t>(place)];
  const bool was_in = ended.standing == Standing::in;
  ended.left_out_until.reset();
  ended.standing = was_in && end == End::well            ? Standing::done
                   : was_in && end == End::after_leaving ? Standing::left
                                                         : Standing::lost;
  if (ended.standing == Standing::done) {
    for (Place& other : places_) other.start.reset();
  }
  if (ended.standing != Standing::lost || rules_.min_ranks == 0 || ended.restarts >= rules_.max_restarts) return;
  if (is_over() || count(Standing::done) > 0) return;
  constexpr int kMostDoublings = 5;
  const auto pause = std::min(kPause * (1 << std::min(ended.restarts, kMostDoublings)) / 2, kLongestPause);
  ended.start = ended.restarts == 0 ? now : now + pause;
}

std::vector<int> Places::due(Time now) {
  std::vector<int> due;
  for (std::size_t index = 0; index < places_.size(); ++index) {
    Place& place = places_[index];
    if (!place.start || now < *place.start || is_over()) continue;
    place.start.reset();
    place.standing = Standing::asleep;
    ++place.restarts;
    due.push_back(static_cast<int>(index));
  }
  return due;
}

std::vector<int> Places::late(Time now) {
  std::vector<int> late;
  for (std::size_t index = 0; index < places_.size(); ++index) {
    auto& until = places_[index].left_out_until;
    if (!until || now < *until) continue;
    until.reset();
    late.push_back(static_cast<int>(index));
  }
  return late;
}

std::optional<Places::Time> Places::deadline() const {
  std::optional<Time> first;
  const auto take = [&first](const std::optional<Time>& time) {
    if (time && (!first || *time < *first)) first = time;
  };
  for (const Place& place : places_) {
    if (!is_over()) take(place.start);
    take(place.left_out_until);
  }
  return first;
}

int Places::count(Standing standing) const {
  return static_cast<int>(std::ranges::count(places_, standing, &Place::standing));
}

int Places::left() const {
  const auto starts = std::ranges::count_if(places_, [](const Place& place) { return place.start.has_value(); });
  return count(Standing::in) + count(Standing::asleep) + static_cast<int>(starts);
}

bool Places::are_too_few() const {
  return left() + count(Standing::done) < rules_.min_ranks;
}

EpochLog::EpochLog(Events& events, std::string path, Time job_began, std::function<void(const EpochStory&)> heard)
    : path_(std::move(path)),
      job_began_(job_began),
      heard_(std::move(heard)),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      changes_(events, [this](std::size_t) { on_change(); }) {
  const tools::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (inotify_ && ::inotify_add_watch(inotify_.get(), path_.c_str(), IN_MODIFY) >= 0)
    changes_.add_readable(inotify_.get());
}

void EpochLog::on_change() {
  alignas(inotify_event) std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  read();
}

void EpochLog::read() {
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(taken_));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    taken_ += end + 1 - begin;
    try {
      const auto line = core::parsed_json<core::EpochLine>(std::string_view(text).substr(begin, end - begin),
                                                           "an epoch", core::UnknownMembers::skipped);
      epochs_.push_back({.at = std::chrono::duration<double>(core::Clock::now() - job_began_).count(), .line = line});
      heard_(epochs_.back());
    } catch (const Error&) {  // a rank's own scribbling is none
    }
  }
}

}  // namespace col::launch

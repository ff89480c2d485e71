#include "launch/top/live_job.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "common/text.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/look.hpp"
#include "launch/report/rank_words.hpp"

namespace col::launch {
namespace {

using Clock = LiveJob::Clock;

// What the recorder has of a rank tells which messages nobody has received. Of many ranks it takes too long; the last
// call has the label.
constexpr std::size_t kManyRanks = 64;
constexpr int kLastCall = 1;
// Two looks, and what a launcher waits for the answers of others.
constexpr std::chrono::milliseconds kOld{1600};
// A wait of so many seconds may become a hang, and then its reason is wanted.
constexpr double kLongWait = 1;

bool is_page_over(const ControlPage& page) {
  bool all_ended = true;
  for (int i = 0; i < page.local_ranks(); ++i) all_ended = all_ended && page.record(i).has_ended();
  return all_ended || !lives(page);
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool is_of(const SilentNode& node, int rank) {
  return rank >= node.first_rank && rank < node.first_rank + node.ranks;
}

}  // namespace

LiveJob::LiveJob(JobPlace place) : place_(std::move(place)) {}

bool LiveJob::ask() {
  if (asking_ || place_.directory.empty()) return false;
  const bool many = heard_.size() > kManyRanks;
  asking_ = AskingLauncher::ask(
      place_.directory, {.calls = waits_long_ && !many ? static_cast<int>(kReportedCalls) : kLastCall, .use = true});
  can_ask_ = asking_ || AskingLauncher::can_ask(place_.directory);
  return asking_.has_value();
}

bool LiveJob::hear() {
  if (!asking_) return false;
  std::optional<JobStory> story = asking_->take();
  if (asking_->is_over()) asking_.reset();
  if (!story) return false;
  take_over(*std::move(story));
  return true;
}

void LiveJob::wait() {
  if (!asking_) return;
  if (std::optional<JobStory> story = asking_->wait()) take_over(*std::move(story));
  asking_.reset();
}

void LiveJob::take_over(JobStory story) {
  heard_at_ = Clock::now();
  // Of another start, nothing is known.
  if (job_ && job_->restarts != story.restarts) heard_.clear();
  std::map<int, Heard> heard;
  for (auto& known : heard_) {
    const auto holds = [&](const SilentNode& node) { return is_of(node, known.first); };
    if (std::ranges::any_of(story.silent, holds)) heard.insert(std::move(known));
  }
  for (RankStory& rank : story.ranks) {
    const int number = rank.rank;
    heard.insert_or_assign(number, Heard{std::move(rank), heard_at_});
  }
  heard_ = std::move(heard);
  story.ranks.clear();
  job_ = std::move(story);
}

JobLook LiveJob::look() {
  const Clock::time_point now = Clock::now();
  JobLook look;
  JobStory fresh;
  rates_.begin_frame();
  if (place_.page) {
    const bool many = static_cast<std::size_t>(place_.page->local_ranks()) + heard_.size() > kManyRanks;
    fresh = look_at_job(*place_.page, place_.id, many ? kLastCall : kReportedCalls);
    meter_.look(*place_.page, fresh.ranks);
  }
  std::set<int> here;
  for (const RankStory& rank : fresh.ranks) here.insert(rank.rank);
  if (job_) add_others(look, fresh, now);
  look.found = why(fresh);
  waits_long_ = look.found.cause != Why::Cause::nothing && look.found.seconds >= kLongWait;
  std::vector<RankStory> old = std::exchange(look.story.ranks, {});
  look.story = std::move(fresh);
  look.story.ranks.insert(look.story.ranks.end(), old.begin(), old.end());
  std::ranges::sort(look.story.ranks, {}, &RankStory::rank);
  for (const RankStory& rank : look.story.ranks) {
    RankRates rates = rates_.rates_of(rank, here.contains(rank.rank));
    const auto known = heard_.find(rank.rank);
    if (!here.contains(rank.rank) && known != heard_.end() && now - known->second.at > kOld)
      rates.age = seconds_between(known->second.at, now);
    look.rates.push_back(std::move(rates));
  }
  return look;
}

// Ranks of other hosts: to `fresh`, or to the look's own if they are old.
void LiveJob::add_others(JobLook& look, JobStory& fresh, Clock::time_point now) const {
  const bool launcher_answers = now - heard_at_ <= kOld;
  std::set<int> here;
  for (RankStory& rank : fresh.ranks) {
    here.insert(rank.rank);
    if (const auto known = heard_.find(rank.rank); known != heard_.end()) rank.node_rank = known->second.rank.node_rank;
  }
  std::vector<RankStory> own = std::move(fresh.ranks);
  fresh = *job_;
  fresh.job_id = place_.id;
  fresh.seconds += seconds_between(heard_at_, now);
  fresh.ranks = std::move(own);
  for (const auto& [number, heard] : heard_) {
    if (here.contains(number)) continue;
    (now - heard.at <= kOld ? fresh : look.story).ranks.push_back(heard.rank);
  }
  // A host of this page answers by the page.
  std::erase_if(fresh.silent, [&](const SilentNode& node) {
    return std::ranges::any_of(here, [&](int rank) { return is_of(node, rank); });
  });
  if (!launcher_answers) {
    fresh.silent.clear();
    look.notices.push_back(
        fmt::format("the launcher on this host has not answered for {}: other hosts are as they were",
                    tools::in_words(seconds_between(heard_at_, now))));
    return;
  }
  for (const SilentNode& node : fresh.silent) {
    const auto known = std::ranges::find_if(heard_, [&](const auto& entry) { return is_of(node, entry.first); });
    if (known == heard_.end()) {
      look.notices.push_back(name_silent_node(node) + " has not answered: its ranks are not shown");
    } else if (now - known->second.at > kOld) {
      look.notices.push_back(fmt::format("{} has not answered for {}: its ranks are as they were",
                                         name_silent_node(node),
                                         tools::in_words(seconds_between(known->second.at, now))));
    }
  }
}

bool LiveJob::is_over() const {
  if (place_.page && !is_page_over(*place_.page)) return false;
  if (place_.directory.empty() || !can_ask_) return true;
  return place_.page && job_ && !others_live();
}

// A host that is silent may have living ranks.
bool LiveJob::others_live() const {
  return !job_->silent.empty() ||
         std::ranges::any_of(heard_, [](const auto& entry) { return !entry.second.rank.status.exited; });
}

bool LiveJob::finds_restart() {
  if (!place_.page || place_.directory.empty()) return false;
  try {
    std::shared_ptr<ControlPage> page = ControlPage::look_at(place_.directory + "/" + kControlPage);
    if (page->made_at() == place_.page->made_at() || is_page_over(*page)) return false;
    place_.page = std::move(page);
    meter_.forget();
    rates_.forget();
    heard_.clear();
    return true;
  } catch (const Error&) {
    return false;
  }
}

JobStory LiveJob::whole(const AskedFor& what) const {
  if (!place_.directory.empty()) {
    if (auto asking = AskingLauncher::ask(place_.directory, what)) {
      if (std::optional<JobStory> story = asking->wait()) {
        story->tool = "coljob";
        return *std::move(story);
      }
    }
  }
  JobStory nothing;
  nothing.job_id = place_.id;
  if (!place_.page) return nothing;
  return look_at_job(*place_.page, place_.id, static_cast<std::size_t>(what.calls));
}

}  // namespace col::launch

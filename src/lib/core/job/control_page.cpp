#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/job/page.hpp"
#include "core/job/process.hpp"
#include "core/job/record_words.hpp"

namespace col {

namespace {

// Writing a cause takes microseconds. A process that needs longer than this was killed or stopped while it wrote.
constexpr Duration kClaimPatience = std::chrono::milliseconds(100);

// CLOCK_MONOTONIC, which all processes of a host share; never 0, which means "not claimed".
std::uint64_t claim_time() noexcept {
  return std::max<std::uint64_t>(core::clock_ns(), 1);
}

AbortCause unwritten_cause() {
  return {ErrorCode::aborted, -1,
          "the job was aborted by a process that died before it could say why; look at what the ranks printed last"};
}

}  // namespace

struct ControlPage::Impl {
  explicit Impl(core::PageMapping mapping_)
      : mapping(std::move(mapping_)),
        local_ranks(static_cast<int>(mapping.header().local_ranks.load(std::memory_order_relaxed))),
        records(new RankRecord[static_cast<std::size_t>(local_ranks)]) {
    for (int i = 0; i < local_ranks; ++i) {
      RankRecord& record = records[static_cast<std::size_t>(i)];
      record.layout_ = mapping.record(i);
      record.recorder_ = mapping.recorder(i);
    }
  }

  core::AbortSlot& slot() const noexcept { return mapping.header().abort; }

  core::PageMapping mapping;
  int local_ranks;
  std::unique_ptr<RankRecord[]> records;
};

ControlPage::ControlPage(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlPage::~ControlPage() = default;

// shared_ptr throughout: contexts, groups and waits keep the page mapped for as long as the last of them needs it.

std::shared_ptr<ControlPage> ControlPage::create(const std::string& path, int local_ranks, std::string_view job_id) {
  auto page = core::create_page_file(path, local_ranks, job_id, core::Publish::replace);
  return std::shared_ptr<ControlPage>(new ControlPage(std::make_unique<Impl>(std::move(*page))));
}

std::shared_ptr<ControlPage> ControlPage::open(const std::string& path, std::string_view job_id) {
  auto page = core::open_page_file(path, job_id);
  if (!page) {
    throw Error(ErrorCode::io,
                fmt::format("control page '{}' does not exist; the job may have ended, or COL_CONTROL names "
                            "the wrong file",
                            path));
  }
  return std::shared_ptr<ControlPage>(new ControlPage(std::make_unique<Impl>(std::move(*page))));
}

std::shared_ptr<ControlPage> ControlPage::look_at(const std::string& path) {
  auto page = core::open_any_page_file(path);
  if (!page) throw Error(ErrorCode::io, fmt::format("control page '{}' does not exist; the job may have ended", path));
  return std::shared_ptr<ControlPage>(new ControlPage(std::make_unique<Impl>(std::move(*page))));
}

std::shared_ptr<ControlPage> ControlPage::open_or_create(const std::string& path, int local_ranks,
                                                         std::string_view job_id) {
  // The second round is for a page that another process made in between; more only if somebody keeps removing it.
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    auto page = core::open_page_file(path, job_id);
    if (!page) page = core::create_page_file(path, local_ranks, job_id, core::Publish::keep_existing);
    if (!page) continue;
    auto impl = std::make_unique<Impl>(std::move(*page));
    if (impl->local_ranks != local_ranks) {
      throw Error(
          ErrorCode::mismatch,
          fmt::format("control page '{}' is for {} local ranks, this process expects {}; give all ranks of a host "
                      "the same COL_LOCAL_WORLD_SIZE",
                      path, impl->local_ranks, local_ranks));
    }
    return std::shared_ptr<ControlPage>(new ControlPage(std::move(impl)));
  }
  throw Error(ErrorCode::io, fmt::format("control page '{}' appears and disappears; let only one job use it", path));
}

std::shared_ptr<ControlPage> ControlPage::in_memory(int local_ranks) {
  return std::shared_ptr<ControlPage>(
      new ControlPage(std::make_unique<Impl>(core::create_anonymous_page(local_ranks))));
}

int ControlPage::local_ranks() const noexcept {
  return impl_->local_ranks;
}

RankRecord& ControlPage::record(int local_rank) const {
  if (local_rank < 0 || local_rank >= impl_->local_ranks) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("local rank {} is outside the control page, which has ranks 0 to {}; check COL_LOCAL_RANK and "
                    "COL_LOCAL_WORLD_SIZE",
                    local_rank, impl_->local_ranks - 1));
  }
  return impl_->records[static_cast<std::size_t>(local_rank)];
}

std::chrono::system_clock::time_point ControlPage::made_at() const noexcept {
  const std::uint64_t made_ns = impl_->mapping.header().made_ns.load(std::memory_order_relaxed);
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(made_ns)));
}

std::int64_t ControlPage::maker() const noexcept {
  return core::ProcessId::from_word(impl_->mapping.header().maker.load(std::memory_order_relaxed)).pid();
}

bool ControlPage::maker_lives() const {
  return core::ProcessId::from_word(impl_->mapping.header().maker.load(std::memory_order_relaxed)).alive();
}

std::vector<RankActivity> ControlPage::activities(bool look_for_stopped) const {
  std::vector<RankActivity> all;
  for (int i = 0; i < impl_->local_ranks; ++i) {
    RankActivity activity = impl_->records[static_cast<std::size_t>(i)].read();
    if (activity.state == RankActivity::State::absent) continue;
    if (look_for_stopped) {
      using Condition = core::ProcessId::Condition;
      const Condition condition = core::ProcessId(activity.pid, activity.pid_start).condition();
      activity.stopped = condition == Condition::stopped;
      activity.gone = condition == Condition::gone;
    }
    all.push_back(std::move(activity));
  }
  return all;
}

const RankActivity* last_in_chain(const std::vector<RankActivity>& activities, int first) {
  using State = RankActivity::State;
  int rank = first;
  for (std::size_t links = 0; links <= activities.size(); ++links) {
    const auto found = std::find_if(activities.begin(), activities.end(),
                                    [&](const RankActivity& activity) { return activity.rank == rank; });
    if (found == activities.end()) return nullptr;
    const bool goes_on = found->state == State::waiting || found->held_up_by >= 0;
    if (found->stopped || !goes_on) return &*found;
    rank = found->held_up_by;
  }
  return nullptr;
}

bool ControlPage::abort(const AbortCause& cause) noexcept {
  core::AbortSlot& slot = impl_->slot();
  std::uint64_t unclaimed = 0;
  // relaxed: the claim orders nothing; what is written is published by `ready`.
  if (!slot.claimed.compare_exchange_strong(unclaimed, claim_time(), std::memory_order_relaxed)) return false;
  slot.code.store(static_cast<std::int32_t>(cause.code), std::memory_order_relaxed);
  slot.rank.store(cause.rank, std::memory_order_relaxed);
  slot.message.store(cause.message, 0);
  slot.ready.store(1, std::memory_order_release);  // pairs with the acquire in abort_cause
  ring();
  return true;
}

const std::atomic<std::uint32_t>& ControlPage::news() const noexcept {
  return impl_->mapping.header().news;
}

void ControlPage::ring() noexcept {
  std::atomic<std::uint32_t>& news = impl_->mapping.header().news;
  news.fetch_add(1, std::memory_order_release);
  core::wake_all_on_word(news);
}

bool ControlPage::aborted() const noexcept {
  return impl_->slot().claimed.load(std::memory_order_relaxed) != 0;
}

std::optional<AbortCause> ControlPage::abort_cause() const {
  const core::AbortSlot& slot = impl_->slot();
  const std::uint64_t claimed = slot.claimed.load(std::memory_order_relaxed);
  if (claimed == 0) return std::nullopt;
  const std::uint64_t entered = claim_time();
  // acquire: pairs with the release in abort: the cause is complete.
  while (slot.ready.load(std::memory_order_acquire) == 0) {
    const std::uint64_t now = claim_time();
    // By either clock, in case the claimer's runs ahead of ours (a time namespace).
    const auto patience = static_cast<std::uint64_t>(kClaimPatience.count());
    if (now - entered >= patience || (now > claimed && now - claimed >= patience)) return unwritten_cause();
    core::sleep_for(std::chrono::microseconds(50));
  }
  return AbortCause{static_cast<ErrorCode>(slot.code.load(std::memory_order_relaxed)),
                    slot.rank.load(std::memory_order_relaxed), slot.message.load()};
}

// ---- The launcher's words in a rank's record

void RankRecord::started(int rank, std::int64_t pid) noexcept {
  const bool is_first = layout_->started.load(std::memory_order_relaxed) == 0;
  layout_->ended.store(core::pack(static_cast<std::uint32_t>(is_first ? 0 : 2 * (restarts() + 1)), 0),
                       std::memory_order_release);
  layout_->epoch.store(0, std::memory_order_release);
  layout_->started.store(core::pack(static_cast<std::uint32_t>(rank + 1), static_cast<std::uint32_t>(pid)),
                         std::memory_order_release);
}

void RankRecord::ended(int wait_status) noexcept {
  layout_->ended.store(
      core::pack(static_cast<std::uint32_t>(2 * restarts() + 1), static_cast<std::uint32_t>(wait_status)),
      std::memory_order_release);
}

int RankRecord::started_as() const noexcept {
  return static_cast<int>(core::upper_half(layout_->started.load(std::memory_order_acquire))) - 1;
}

bool RankRecord::has_ended() const noexcept {
  return core::upper_half(layout_->ended.load(std::memory_order_acquire)) % 2 != 0;
}

int RankRecord::restarts() const noexcept {
  return static_cast<int>(core::upper_half(layout_->ended.load(std::memory_order_acquire)) / 2);
}

std::optional<StartedProcess> RankRecord::process() const {
  const std::uint64_t started = layout_->started.load(std::memory_order_acquire);
  if (started == 0) return std::nullopt;
  StartedProcess process{static_cast<int>(core::upper_half(started)) - 1, core::lower_half(started), false,
                         std::nullopt};
  const std::uint64_t ended = layout_->ended.load(std::memory_order_acquire);
  if (core::upper_half(ended) % 2 != 0)
    process.wait_status = static_cast<int>(core::lower_half(ended));
  else
    process.stopped = core::ProcessId(process.pid, 0).stopped();
  return process;
}

}  // namespace col

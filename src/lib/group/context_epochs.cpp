// The next epoch of a group of the context, by renew() and from outside: what the ranks decide is join/renewal.hpp's,
// and here the groups of this process follow it.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/env.hpp"
#include "core/log.hpp"
#include "group/call/checks.hpp"
#include "group/context_impl.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/world_ranks.hpp"
#include "group/join/epoch_log.hpp"
#include "group/join/join.hpp"
#include "group/join/meeting.hpp"
#include "group/join/member.hpp"
#include "group/join/renewal.hpp"
#include "group/state.hpp"
#include "store/base/call_limit.hpp"

namespace col {
namespace {

// One thread at a time renews a group, and others see that in the rank's record.
class OneRenewal {
 public:
  OneRenewal(group::Epoch& epoch, const group::Core& core) : epoch_(epoch), record_(core.record()) {
    if (epoch.is_renewing.exchange(true))
      throw core.own_error(ErrorCode::invalid_argument,
                           "renew: another thread of this rank is in renew() of this group; call it in one thread");
    if (record_ != nullptr) record_->begin(epoch.group, 0, "renew", core.token());
  }
  ~OneRenewal() {
    if (record_ != nullptr) record_->end(epoch_.group);
    epoch_.is_renewing = false;
  }
  OneRenewal(const OneRenewal&) = delete;
  OneRenewal& operator=(const OneRenewal&) = delete;

 private:
  group::Epoch& epoch_;
  RankRecord* const record_;  // null if there is none
};

std::vector<int> checked_excluded(const group::Core& core, const Renewal& renewal) {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw core.own_error(ErrorCode::invalid_argument, "renew: " + what);
  };
  require(renewal.size >= 0, fmt::format("size = {} is no number of ranks; 0 means as many as before", renewal.size));
  require(renewal.min >= 1, fmt::format("min = {} makes no group; it must be at least 1", renewal.min));
  require(renewal.size == 0 || renewal.size >= renewal.min,
          fmt::format("size = {} is less than min = {}", renewal.size, renewal.min));
  require(renewal.wait >= Duration::zero(), "wait is negative; zero waits for nobody");
  std::vector<int> excluded(renewal.excluded.begin(), renewal.excluded.end());
  std::ranges::sort(excluded);
  for (const int rank : excluded) group::check_peer(rank, "renew: excluded rank", core.shape());
  require(std::ranges::adjacent_find(excluded) == excluded.end(), "a rank is listed twice in `excluded`");
  return excluded;
}

}  // namespace

std::vector<std::shared_ptr<Group::State>> Context::Impl::made_from(const group::Epoch& epoch) const {
  auto children = states();
  std::erase_if(children, [&](const auto& state) {
    return !state->lineage().is_derived || state->lineage().epoch.get() != &epoch;
  });
  return children;
}

// The part of the next epoch's connections that this rank has.
class Context::Impl::NextEpoch {
 public:
  NextEpoch(Impl& impl, const group::Epoch& epoch)
      : spec(epoch.wanted),
        request{.spec = spec,
                .context = impl.spec_,
                .job_scope = impl.job_scope_,
                .job = group::job_name(impl.spec_),
                .process_nonce = impl.nonce_,
                .record = impl.record(),
                .members = members_,
                .write_record = false,
                .names_wire = epoch.names_wire,
                .agreed = &roster_} {}
  NextEpoch(const NextEpoch&) = delete;
  NextEpoch& operator=(const NextEpoch&) = delete;

  group::Renewed of(group::Epoch& epoch) {
    group::Renewed renewed{.epoch = epoch,
                           .page = request.context.control.get(),
                           .record = request.record,
                           .interrupt = &request.context.interrupt};
    renewed.connect = [this](const group::EpochRecord& record, int number, const Deadline& until,
                             const std::function<void()>& look) { connect(record, number, until, look); };
    renewed.disconnect = [this] { parts.reset(); };
    return renewed;
  }

  GroupSpec spec;
  group::JoinRequest request;
  std::optional<group::GroupParts> parts = {};

 private:
  void connect(const group::EpochRecord& record, int number, const Deadline& until, const std::function<void()>& look) {
    roster_ = group::roster_of(record);
    members_.clear();
    for (const group::Member& member : roster_.members) members_.push_back(member.peer.global_rank);
    // One that joins takes the backend of those who have been there.
    const group::Member& first = roster_.members[static_cast<std::size_t>(record.source())];
    const std::string backend = group::wanted_backend(first);
    spec.backend_name = backend == to_string(Backend::automatic) ? "" : backend;
    request.names_wire = first.names_wire;
    spec.rank = number;
    spec.world_size = static_cast<int>(members_.size());
    request.until = until;
    request.look_aside = look;
    parts = group::join(request);
  }

  std::vector<int> members_ = {};
  group::Roster roster_ = {};
};

Group Context::Impl::renew(Group::State& old, const Renewal& renewal) {
  group::Epoch& epoch = old.own_epoch("renew");
  const group::Core& core = old.core();
  const OneRenewal one(epoch, core);
  old.access().require_usable();
  NextEpoch next(*this, epoch);
  group::Renewed renewed = next.of(epoch);
  for (const PeerInfo& peer : core.surroundings().peers)
    renewed.processes.emplace(epoch.record->members[static_cast<std::size_t>(peer.rank)].incarnation, peer);
  const bool is_broken = old.broken_by().has_value();
  renewed.end_group = [&](const Error& why, bool is_urgent) { old.revoke(why, is_urgent); };
  renewed.end_derived = [&](const Error& why, bool is_urgent) {
    for (const auto& child : made_from(epoch)) child->revoke(why, is_urgent || is_broken);
  };
  group::ChangeSpec change{.group = epoch.group,
                           .incarnation = epoch.self,
                           .progress = renewal.progress,
                           .last = epoch.record,
                           .settled = epoch.settled,
                           .size = renewal.size,
                           .min = renewal.min,
                           .wait = renewal.wait,
                           .excluded = checked_excluded(core, renewal)};
  change.address = group::announcement(next.request).encode();
  group::Renewer renewer(std::move(renewed), std::move(change), Deadline::after(core.timeout()));
  const group::Finish end = renewer.run();
  epoch.settled = end.settled;
  if (end.error) {
    const Error why = group::with_world_rank(*end.error, core.surroundings().peers);
    note_failure(why);
    group::write_error_file(error_file_, why);
    throw why;
  }
  if (end.has_left) {
    note_epoch(core.name(), std::nullopt);
    end_epoch(old,
              core.own_error(ErrorCode::aborted, fmt::format("epoch {} is over, and this rank has left the group by "
                                                             "renew() with `excluded`; it has nothing to call here",
                                                             epoch.record->epoch)),
              nullptr);
    return {};
  }
  auto state = enter(next, epoch, end.record);
  if (core.name() == kJobsGroup)
    group::tell_epoch(core::env::get("COL_EPOCH_FILE").value_or(""), *end.record, renewer.stages(),
                      core.surroundings().peers, state->core().surroundings().peers, state->core().rank());
  // The end of the epoch before is no reason for an end of this process any more.
  std::error_code is_none;
  if (!error_file_.empty()) std::filesystem::remove(error_file_, is_none);
  end_epoch(old,
            Error(ErrorCode::aborted,
                  fmt::format("epoch {} is over, and epoch {} has taken its place; use the group that renew() has "
                              "returned, or ask for '{}' by its name",
                              epoch.record->epoch, end.record->epoch, epoch.group),
                  core.name(), core.rank(), core.world_rank(core.rank()), true),
            state);
  watch_ends();
  return Group(std::move(state));
}

Group Context::Impl::join_group(const std::string& name, Duration timeout) {
  check_spec({.name = name});
  require_this_process(name);
  if (!job_scope_)
    throw Error(ErrorCode::invalid_argument,
                "join: this process has no store in common with the ranks of the group; start it with the COL_STORE "
                "and COL_JOB_ID of their job, or make its Context with their store and job_id",
                name);
  Reservation reservation(*this, name);
  const bool is_patient = spec_.is_spare && timeout <= Duration::zero();
  const Deadline deadline = Deadline::after(is_patient                   ? Deadline::kMaxBudget
                                            : timeout > Duration::zero() ? timeout
                                                                         : spec_.timeout);
  const group::GroupRecord found = group::await_record(*job_scope_, name, deadline, spec_, is_patient);
  const std::string& id = found.first_id.empty() ? found.id : found.first_id;
  group::Epoch before{.group = name, .id = id, .self = group::random_nonce(), .place = place_of_epochs(name, id)};
  if (found.first_id.empty()) before.first = group::first_record(id, found.world_size);
  before.wanted.name = name;
  NextEpoch next(*this, before);
  group::Renewed renewed = next.of(before);
  renewed.sleeps = is_patient;
  const group::Member self = group::announcement(next.request);
  renewed.processes.emplace(before.self, self.peer);
  group::ChangeSpec change{.group = name,
                           .incarnation = before.self,
                           .address = self.encode(),
                           .ticket = group::EpochKeys::draw_ticket(*before.place)};
  const group::Finish end = group::Renewer(std::move(renewed), std::move(change), deadline).run();
  if (end.error) throw Error(*end.error);
  auto state = enter(next, before, end.record);
  reservation.fulfil(state, true);
  watch_ends();
  return Group(std::move(state));
}

// The group of what has been connected. Others find it by its name, if they want to join.
std::shared_ptr<Group::State> Context::Impl::enter(NextEpoch& next, const group::Epoch& before,
                                                   group::RecordPtr record) {
  group::GroupParts& parts = *next.parts;
  if (parts.core.id.empty()) parts.core.id = fmt::format("{:016x}", record->token);
  if (next.spec.rank == 0 && next.spec.is_kept && job_scope_) {
    const store::CallLimit limit(group::kStoreTime);
    try {
      group::write_record(next.request, parts, parts.core.surroundings.peers, before.id);
    } catch (const std::exception& e) {  // the ranks use it already
      core::log::warn("group '{}': cannot write its record: {}", before.group, e.what());
    }
  }
  note_epoch(before.group, record->epoch);
  auto epoch = group::next_epoch_of(before, std::move(record));
  epoch->wanted.backend_name = next.spec.backend_name;
  epoch->names_wire = next.request.names_wire;
  return make_state(std::move(parts), next.spec, {.epoch = std::move(epoch)});
}

// By the id, as a token is told to nobody who is to join. A world of one without a store has its own.
std::shared_ptr<Store> Context::Impl::place_of_epochs(const std::string& name, const std::string& id) const {
  if (!spec_.store) return make_memory_store();
  return make_prefix_store(group::meeting_place(spec_.store, group::job_name(spec_), name), "epochs of " + id);
}

// The name stands for `next` from now on, or for nothing.
void Context::Impl::end_epoch(Group::State& old, const Error& why, const std::shared_ptr<Group::State>& next) {
  const auto children = made_from(*old.lineage().epoch);
  Member before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(groups_[old.core().name()], Member{});
    if (next)
      groups_[old.core().name()] = {.state = next, .kept = next->core().has_record() ? next : nullptr, .is_made = true};
    else
      groups_.erase(old.core().name());
    left_[old.core().name()] = old.core().id();
    for (const auto& child : children) {
      groups_.erase(child->core().name());
      if (child->core().has_record()) left_[child->core().name()] = child->core().id();
    }
    failure_.reset();
  }
  for (const auto& child : children) {
    end_record(child->core(), false);
    child->retire(why);
    if (next) forget_notice(*child, *next);
  }
  old.retire(why);
  if (next) forget_notice(old, *next);
}

// The notice in the store why the group has ended: all who go on know it. One that was left out may still look.
void Context::Impl::forget_notice(Group::State& ended, Group::State& next) noexcept {
  const auto& lost = next.lineage().epoch->record->lost;
  const auto& peers = ended.core().surroundings().peers;
  if (std::ranges::any_of(lost, &group::LostSeat::is_excluded)) return;
  const auto goes_on = [&](const PeerInfo& peer) { return next.core().surroundings().rank_of(peer.global_rank) >= 0; };
  const auto first = std::ranges::find_if(peers, goes_on);
  if (first != peers.end() && first->rank == ended.core().rank())
    group::forget_failure(*ended.core().surroundings().scope);
}

}  // namespace col

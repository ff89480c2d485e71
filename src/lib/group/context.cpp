// The registry of groups, and the making of a group.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/clock/lock.hpp"
#include "core/env.hpp"
#include "core/fork_guard.hpp"
#include "core/log.hpp"
#include "core/trace/trace.hpp"
#include "group/adopt/adopted_job.hpp"
#include "group/adopt/launchers.hpp"
#include "group/call/checks.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/world_ranks.hpp"
#include "group/join/end_watch.hpp"
#include "group/join/host_backend.hpp"
#include "group/join/join.hpp"
#include "group/join/meeting.hpp"
#include "group/join/member.hpp"
#include "group/join/renewal.hpp"
#include "group/state.hpp"
#include "store/base/call_limit.hpp"

namespace col {

// Shared with nobody for long: groups that outlive it have weak references.
class Context::Impl : public std::enable_shared_from_this<Context::Impl> {
 public:
  explicit Impl(ContextSpec spec);
  // What the end of the context does.
  void leave() noexcept;

  Group init_group(const GroupSpec& spec);
  Group join_group(const std::string& name, Duration timeout);
  Group group(std::string_view name);
  std::optional<Group> find(std::string_view name) const;
  std::vector<Group> all() const;
  bool destroy_group(std::string_view name);
  void finalize();
  const ContextSpec& spec() const { return spec_; }
  void set_error_file(std::string path) { error_file_ = std::move(path); }

 private:
  class Reservation;
  class NextEpoch;

  // A group, from when its name is reserved. While it is being made, there is no state.
  struct Member {
    std::weak_ptr<Group::State> state = {};
    std::shared_ptr<Group::State> kept = {};  // the same; null if it goes with its handles
    bool is_made = false;

    bool has_gone() const { return is_made && state.expired(); }
  };

  struct Adoption {
    GroupSpec spec;
    std::string id = {};            // id of the record; empty if the environment describes the group
    std::vector<int> members = {};  // the job's ranks, in order; empty if they are not known before they meet
    std::shared_ptr<group::Epoch> ancestor = {};  // of the group from which it is made; null: from none
  };
  // `connected`: if the ranks have connected already.
  Group make_group(const Adoption& adoption, std::optional<group::Connected> connected = {});
  std::shared_ptr<Group::State> make_state(group::GroupParts parts, const GroupSpec& spec,
                                           Group::State::Lineage lineage);
  Group renew(Group::State& old, const Renewal& renewal);
  std::shared_ptr<Group::State> enter(NextEpoch& next, const group::Epoch& before, group::RecordPtr record);
  std::shared_ptr<Store> place_of_epochs(const std::string& name, const std::string& id) const;
  void end_epoch(Group::State& old, const Error& why, const std::shared_ptr<Group::State>& next);
  static void forget_notice(Group::State& ended, Group::State& next) noexcept;
  std::vector<std::shared_ptr<Group::State>> made_from(const group::Epoch& epoch) const;
  std::optional<Adoption> adoptable(std::string_view name) const;
  void watch_ends();
  bool is_whole_job(const Adoption& adoption) const;
  Error with_world_rank(const Error& error, const Adoption& adoption) const;
  void end_record(const group::Core& core, bool is_over) noexcept;
  RankRecord* record() const;
  void note_failure(const Error& error);
  void tell_others(int held_up_by) noexcept;
  std::vector<std::shared_ptr<Group::State>> states() const;
  std::optional<Error> reason_to_leave(Group::State& group) const;
  void require_this_process(std::string_view group) const;

  ContextSpec spec_;
  std::shared_ptr<Store> job_scope_;  // shared with the groups made from it
  std::uint64_t nonce_;
  const core::ForkGuard fork_guard_;  // a forked child is in none of the groups, and makes none
  std::string error_file_;
  std::shared_ptr<const group::CallSettings> settings_;  // shared with the groups
  const std::shared_ptr<group::StoreHealth> store_health_ = std::make_shared<group::StoreHealth>();  // likewise

  mutable std::mutex mutex_;  // guards the members below; never held during a wait
  std::map<std::string, Member, std::less<>> groups_;
  std::shared_ptr<void> ends_;                            // watch_ends(); ends before the page in spec_
  std::map<std::string, std::string, std::less<>> left_;  // ids of groups that were left and must not be adopted again
  // The last error that broke a group, or by which one was not made. Others hear of it if this rank leaves their groups
  // and has made no call there since. Nothing once another group has been made.
  struct Failure {
    Error error;
    std::map<std::string, std::uint64_t, std::less<>> made = {};  // calls until then, by the group's id, where known

    bool is_why(Group::State& leaves) const {
      const auto before = made.find(leaves.core().id());
      const auto now = leaves.calls_made();
      return before == made.end() || !now || *now == before->second;
    }
  };
  std::optional<Failure> failure_;
};

namespace {

constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

void check_spec(const GroupSpec& spec) {
  if (spec.name.empty()) throw Error(ErrorCode::invalid_argument, "a group needs a name; \"default\" is the usual one");
  if (spec.world_size < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a world size of {} makes no group; it must be at least 1", spec.world_size), spec.name);
  if (spec.rank < 0 || spec.rank >= spec.world_size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {} does not fit a world size of {}; ranks count from 0 to {}", spec.rank,
                            spec.world_size, spec.world_size - 1),
                spec.name);
}

std::shared_ptr<const group::CallSettings> settings_of(const ContextSpec& spec) {
  auto settings = std::make_shared<group::CallSettings>(group::CallSettings::from_environment());
  settings->interrupt = spec.interrupt;
  settings->serialize = spec.serialize;
  return settings;
}

}  // namespace

// Keeps a name in the registry while its group is being made, so that it cannot be made twice.
class Context::Impl::Reservation {
 public:
  Reservation(Impl& impl, const std::string& name) : impl_(impl), name_(name) {
    const std::lock_guard lock(impl_.mutex_);
    std::erase_if(impl_.groups_, [](const auto& known) { return known.second.has_gone(); });
    if (!impl_.groups_.try_emplace(name).second)
      throw Error(ErrorCode::already_initialized,
                  "the group is already initialized in this process; destroy_collective_group ends it", name);
  }
  ~Reservation() {
    if (fulfilled_) return;
    const std::lock_guard lock(impl_.mutex_);
    impl_.groups_.erase(name_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void fulfil(const std::shared_ptr<Group::State>& state, bool is_kept) {
    const std::lock_guard lock(impl_.mutex_);
    impl_.groups_[name_] = {.state = state, .kept = is_kept ? state : nullptr, .is_made = true};
    impl_.failure_.reset();
    fulfilled_ = true;
  }

 private:
  Impl& impl_;
  const std::string& name_;
  bool fulfilled_ = false;
};

Context::Impl::Impl(ContextSpec spec)
    : spec_(std::move(spec)), nonce_(group::random_nonce()), settings_(settings_of(spec_)) {
  if (spec_.timeout <= Duration::zero()) spec_.timeout = kDefaultTimeout;
  if (spec_.store) job_scope_ = group::job_scope(spec_);
  if (RankRecord* own = record()) own->join(spec_.rank);
}

void Context::Impl::leave() noexcept {
  try {
    finalize();
  } catch (const std::exception& e) {
    core::log::warn("while leaving the job: {}", e.what());
  }
}

RankRecord* Context::Impl::record() const {
  return spec_.control ? &spec_.control->record(spec_.local_rank) : nullptr;
}

void Context::Impl::require_this_process(std::string_view group) const {
  if (!fork_guard_.is_forked_child()) return;
  throw Error(
      ErrorCode::not_initialized,
      fmt::format("this process was forked from rank {} of {}, and is no rank of that job itself; leave its calls "
                  "to the parent, or fork before the parent joins; for a job of its own, this process needs an "
                  "environment of its own, or a store, a rank and a world size (ContextSpec::meet; in Python "
                  "col.init(store=, rank=, world_size=))",
                  spec_.rank, spec_.world_size),
      group);
}

Group Context::Impl::init_group(const GroupSpec& spec) {
  return make_group({.spec = spec});
}

Group Context::Impl::make_group(const Adoption& adoption, std::optional<group::Connected> connected) {
  const GroupSpec& spec = adoption.spec;
  const std::string& adopted_id = adoption.id;
  check_spec(spec);
  require_this_process(spec.name);
  Reservation reservation(*this, spec.name);
  GroupSpec wanted = spec;
  const bool by_setting = wanted.backend == Backend::automatic && wanted.backend_name.empty();
  if (by_setting) wanted.backend_name = settings_->backend;
  try {
    group::JoinRequest request{.spec = wanted,
                               .context = spec_,
                               .job_scope = job_scope_,
                               .job = group::job_name(spec_),
                               .process_nonce = nonce_,
                               .record = record(),
                               .members = adoption.members,
                               .write_record = adopted_id.empty() && spec.is_kept,
                               .names_wire = by_setting && group::is_wire(settings_->backend),
                               .relatives = connected ? &*connected : nullptr,
                               .tell = [this](int held_up_by) { tell_others(held_up_by); }};
    if (is_whole_job(adoption)) {
      request.name_ranks = [this](const std::vector<int>& ranks) {
        return group::adopt::ranks_as_launched(ranks, spec_);
      };
      request.look_for_others = [this](bool is_last_look) { group::adopt::look_for_others(spec_, is_last_look); };
    }
    group::GroupParts parts =
        connected && connected->channel ? group::join_connected(request, *std::move(connected)) : group::join(request);
    if (!adopted_id.empty()) parts.core.id = adopted_id;
    Group::State::Lineage lineage{.epoch = adoption.ancestor, .is_derived = adoption.ancestor != nullptr};
    if (!lineage.is_derived) {
      std::string id = parts.core.id.empty() ? fmt::format("{:x}", group::random_nonce()) : parts.core.id;
      auto place = place_of_epochs(spec.name, id);
      lineage.epoch = group::first_epoch_of(wanted, request.names_wire, std::move(id), std::move(place));
    }
    auto state = make_state(std::move(parts), spec, std::move(lineage));
    reservation.fulfil(state, spec.is_kept);
    if (!connected) watch_ends();
    return Group(std::move(state));
  } catch (const Error& cause) {
    const Error error = group::adopt::with_place(with_world_rank(cause, adoption), spec_);
    note_failure(error);
    group::write_error_file(error_file_, error);
    throw error;
  }
}

std::shared_ptr<Group::State> Context::Impl::make_state(group::GroupParts parts, const GroupSpec& spec,
                                                        Group::State::Lineage lineage) {
  parts.core.error_file = error_file_;
  parts.core.settings = settings_;
  parts.core.surroundings.store = store_health_;
  parts.core.global_rank = spec_.rank;
  parts.core.has_record = spec.is_kept;
  // A call of another thread may still be going on in a group when the context ends.
  const auto self = [weak = weak_from_this(), name = spec.name] {
    auto impl = weak.lock();
    if (!impl)
      throw Error(ErrorCode::not_initialized, "the context of the group has ended; make groups in another one", name);
    return impl;
  };
  group::GroupHost host{
      .family = {.make_group =
                     [self, epoch = lineage.epoch](const GroupSpec& child, std::vector<int> members,
                                                   std::optional<group::Connected> by_parent) {
                       return self()->make_group({.spec = child, .members = std::move(members), .ancestor = epoch},
                                                 std::move(by_parent));
                     },
                 .has_group = [self](const std::string& child) { return self()->find(child).has_value(); },
                 .scope_of =
                     [self](const std::string& child, std::uint64_t token) {
                       const ContextSpec& job = self()->spec_;
                       return group::scope_of(group::meeting_place(job.store, group::job_name(job), child), token);
                     }},
      .all_groups =
          [weak = weak_from_this()] {
            const auto impl = weak.lock();
            return impl ? impl->all() : std::vector<Group>();
          },
      .destroy_group = [self](const std::string& child) { self()->destroy_group(child); },
      .renew = [self](Group::State& old, const Renewal& renewal) { return self()->renew(old, renewal); },
      .has_broken =
          [weak = weak_from_this()](const Error& cause) {
            if (const auto impl = weak.lock()) impl->note_failure(cause);
          }};
  return Group::State::make(std::move(parts), std::move(host), std::move(lineage));
}

// ---- The next epoch of a group

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
  const group::Finish end =
      group::Renewer(std::move(renewed), std::move(change), Deadline::after(core.timeout())).run();
  epoch.settled = end.settled;
  if (end.error) {
    const Error why = group::with_world_rank(*end.error, core.surroundings().peers);
    note_failure(why);
    group::write_error_file(error_file_, why);
    throw why;
  }
  if (end.has_left) {
    end_epoch(old,
              core.own_error(ErrorCode::aborted, fmt::format("epoch {} is over, and this rank has left the group by "
                                                             "renew() with `excluded`; it has nothing to call here",
                                                             epoch.record->epoch)),
              nullptr);
    return {};
  }
  auto state = enter(next, epoch, end.record);
  end_epoch(old,
            core.own_error(ErrorCode::aborted,
                           fmt::format("epoch {} is over, and epoch {} has taken its place; use the group that "
                                       "renew() has returned, or ask for '{}' by its name",
                                       epoch.record->epoch, end.record->epoch, epoch.group)),
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
  const Deadline deadline = Deadline::after(timeout > Duration::zero() ? timeout : spec_.timeout);
  const group::GroupRecord found = group::await_record(*job_scope_, name, deadline, spec_);
  const std::string& id = found.first_id.empty() ? found.id : found.first_id;
  group::Epoch before{.group = name, .id = id, .self = group::random_nonce(), .place = place_of_epochs(name, id)};
  if (found.first_id.empty()) before.first = group::first_record(id, found.world_size);
  before.wanted.name = name;
  NextEpoch next(*this, before);
  group::Renewed renewed = next.of(before);
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

// Others may have joined the page since the last group.
void Context::Impl::watch_ends() {
  const RankRecord* const own = record();
  if (own == nullptr || own->started_as() >= 0) return;  // a launcher watches
  auto watch = group::watch_ends(*spec_.control, spec_.local_rank);
  const std::lock_guard lock(mutex_);
  ends_.swap(watch);
}

bool Context::Impl::is_whole_job(const Adoption& adoption) const {
  const GroupSpec& spec = adoption.spec;
  return adoption.members.empty() && spec.world_size == spec_.world_size && spec.rank == spec_.rank;
}

// Whoever hears of the error in another group knows ranks of the job alone.
Error Context::Impl::with_world_rank(const Error& error, const Adoption& adoption) const {
  const int size = is_whole_job(adoption) ? spec_.world_size : static_cast<int>(adoption.members.size());
  std::vector<PeerInfo> peers(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    peers[index].global_rank = adoption.members.empty() ? rank : adoption.members[index];
  }
  return group::with_world_rank(error, peers);
}

void Context::Impl::note_failure(const Error& error) {
  // The lock may be that of a thread which is not there.
  if (fork_guard_.is_forked_child()) return;
  // Most of these are thrown before anything is done with others.
  constexpr std::array kHarmless = {ErrorCode::invalid_argument, ErrorCode::not_initialized,
                                    ErrorCode::already_initialized, ErrorCode::unavailable};
  if (std::ranges::count(kHarmless, error.code()) > 0) return;
  Failure failure{.error = error};
  for (const auto& state : states()) {
    if (const auto made = state->calls_made()) failure.made.emplace(state->core().id(), *made);
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

// For a rank that waits in no group yet, as one is being made: the ranks of its other groups hear for whom.
void Context::Impl::tell_others(int held_up_by) noexcept {
  if (store_health_->is_mute()) return;
  const store::CallLimit limit(group::kStoreTime);
  try {
    for (const auto& state : states()) state->post_calls(held_up_by, true);
  } catch (const std::exception&) {
    store_health_->has_not_answered();
  }
}

std::vector<std::shared_ptr<Group::State>> Context::Impl::states() const {
  std::vector<std::shared_ptr<Group::State>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, member] : groups_) {
    if (auto state = member.state.lock()) found.push_back(std::move(state));
  }
  return found;
}

// Nothing if this rank leaves in good order.
std::optional<Error> Context::Impl::reason_to_leave(Group::State& group) const {
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  return failure && failure->is_why(group) ? std::optional(failure->error) : std::nullopt;
}

std::optional<Group> Context::Impl::find(std::string_view name) const {
  if (fork_guard_.is_forked_child()) return std::nullopt;  // where the lock may be that of a thread which is not there
  const std::lock_guard lock(mutex_);
  const auto it = groups_.find(name);
  auto state = it != groups_.end() ? it->second.state.lock() : nullptr;
  if (!state) return std::nullopt;
  return Group(std::move(state));
}

std::vector<Group> Context::Impl::all() const {
  std::vector<Group> groups;
  if (fork_guard_.is_forked_child()) return groups;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, member] : groups_) {
    if (auto state = member.state.lock()) groups.push_back(Group(std::move(state)));
  }
  return groups;
}

// How to join a group that nobody in this process has named yet: the environment's word, then the store's.
std::optional<Context::Impl::Adoption> Context::Impl::adoptable(std::string_view name) const {
  namespace env = core::env;
  // A group that this process was in and has left is not joined again by a call that has forgotten that.
  std::optional<std::string> left;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = left_.find(name); it != left_.end()) left = it->second;
  }
  GroupSpec spec;
  spec.name = name;
  if (!left && env::get("COL_GROUP_NAME") == name) {
    const auto world = env::get_int("COL_GROUP_WORLD_SIZE", 1, 1 << 24);
    const auto rank = env::get_int("COL_GROUP_RANK", 0, 1 << 24);
    if (!world || !rank)
      throw Error(ErrorCode::invalid_argument,
                  "COL_GROUP_NAME is set but COL_GROUP_RANK or COL_GROUP_WORLD_SIZE is not; set all three", name);
    spec.world_size = static_cast<int>(*world);
    spec.rank = static_cast<int>(*rank);
    if (const auto backend = env::get("COL_GROUP_BACKEND")) spec.backend = backend_from_string(*backend);
    return Adoption{.spec = std::move(spec)};
  }
  if (!job_scope_) return std::nullopt;
  const auto record = group::find_record(*job_scope_, name);
  if (!record || left == record->id) return std::nullopt;
  const auto self = std::find(record->global_ranks.begin(), record->global_ranks.end(), spec_.rank);
  if (self == record->global_ranks.end()) return std::nullopt;
  spec.world_size = record->world_size;
  spec.rank = static_cast<int>(self - record->global_ranks.begin());
  if (record->backend != to_string(Backend::automatic)) spec.backend_name = record->backend;
  return Adoption{std::move(spec), record->id, record->global_ranks};
}

Group Context::Impl::group(std::string_view name) {
  if (auto found = find(name)) {
    found->state().note_asked_for();
    return *found;
  }
  require_this_process(name);
  if (const auto adoption = adoptable(name)) return make_group(*adoption);
  throw Error(ErrorCode::not_initialized,
              fmt::format("the collective group '{}' is not initialized in this process; call col::init() for "
                          "\"default\", or init_collective_group",
                          name),
              name);
}

bool Context::Impl::destroy_group(std::string_view name) {
  std::shared_ptr<Group::State> state;
  if (fork_guard_.is_forked_child()) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto it = groups_.find(name);
    if (it == groups_.end()) return false;
    state = it->second.state.lock();
    if (!state) return false;
    groups_.erase(it);
    // A group without a record cannot be joined again.
    if (state->core().has_record()) left_[state->core().name()] = state->core().id();
  }
  end_record(state->core(), false);
  if (const auto error = state->destroy(reason_to_leave(*state))) {
    group::write_error_file(error_file_, *error);
    throw *error;
  }
  return true;
}

// A group that is destroyed can be declared again. One that `is_over` with its job still tells those who come too late
// what it was. Best effort: a store that has gone took the record with it.
void Context::Impl::end_record(const group::Core& core, bool is_over) noexcept {
  if (core.rank() != 0 || !core.has_record() || !job_scope_) return;
  const store::CallLimit limit(group::kStoreTime);
  try {
    if (is_over)
      group::forget_processes(*job_scope_, core.name(), core.id());
    else
      group::end_record(*job_scope_, core.name(), core.id());
  } catch (const std::exception& e) {
    core::log::debug("group '{}': its record stays: {}", core.name(), e.what());
  }
}

void Context::Impl::finalize() {
  // A forked child's end is not the rank's. The lock may be that of a thread which is not there.
  if (fork_guard_.is_forked_child()) return;
  std::vector<std::shared_ptr<Group::State>> states;
  std::optional<Error> broken, first;
  std::shared_ptr<void> ends;  // watched until the end
  {
    const std::lock_guard lock(mutex_);
    ends.swap(ends_);
    for (const auto& [name, member] : groups_) {
      auto state = member.state.lock();
      if (!state) continue;
      left_[name] = state->core().id();
      states.push_back(std::move(state));
    }
    // Another thread that makes one will find out by itself.
    std::erase_if(groups_, [](const auto& known) { return known.second.is_made; });
  }
  for (const auto& state : states) {
    if (!broken) broken = state->broken_by();
  }
  if (!broken) {
    const store::CallLimit limit(group::kStoreTime);  // for all together
    for (const auto& state : states) end_record(state->core(), true);
  }
  for (const auto& state : states) {
    const auto error = state->destroy(reason_to_leave(*state));
    if (!first) first = error;
  }
  if (RankRecord* own = record()) own->finish();
  group::adopt::leave_job(spec_, broken || first);
  if (!first) return;
  group::write_error_file(error_file_, *first);
  throw *first;
}

// ---- Context

namespace {

thread_local Context* scoped_context = nullptr;

// What embed() was told. Never destroyed, as the context.
struct Embedding {
  std::mutex mutex;
  Interrupt interrupt;
  bool serialize = false;

  static Embedding& instance() {
    static auto* const embedding = new Embedding;
    return *embedding;
  }
};

// Where the context of the process is. Never destroyed. A process that was forked has one of its own.
struct ProcessPlace {
  explicit ProcessPlace(const ProcessPlace* forked_from) : parent(forked_from) {}

  static ProcessPlace& instance() {
    static std::atomic<ProcessPlace*> of_process{nullptr};
    // acquire pairs with the release below: a thread that sees the object sees it complete.
    ProcessPlace* known = of_process.load(std::memory_order_acquire);
    while (known == nullptr || known->fork_guard.is_forked_child()) {
      auto own = std::make_unique<ProcessPlace>(known);
      if (of_process.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
    }
    return *known;
  }

  // The context of the parent, if this place in a job is its. In it there are no groups for this process, and it makes
  // none: two processes cannot be one rank. Nobody shares a world of one.
  Context* of_parent() const {
    for (const ProcessPlace* each = parent; each != nullptr; each = each->parent) {
      Context* const known = each->context.load(std::memory_order_acquire);
      if (known != nullptr && known->spec().world_size > 1 && each->line == line) return known;
    }
    return nullptr;
  }

  const ProcessPlace* const parent;  // of the process that this one was forked from; null in the first
  const core::ForkGuard fork_guard;
  core::Mutex making;
  std::atomic<Context*> context{nullptr};
  std::string line;  // place_line() of the context
};

}  // namespace

Context::Context(ContextSpec spec) : impl_(std::make_shared<Impl>(std::move(spec))) {}
Context::~Context() {
  impl_->leave();  // here: another thread may keep it for a moment longer
}

Context& Context::current() {
  if (scoped_context != nullptr) return *scoped_context;
  ProcessPlace& own = ProcessPlace::instance();
  // acquire pairs with the release below: a thread that sees the context sees it complete.
  if (Context* const known = own.context.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(own.making);
  if (Context* const known = own.context.load(std::memory_order_acquire)) return *known;
  own.line = group::adopt::place_line(core::env::get);
  if (Context* const parents = own.of_parent()) return *parents;
  ContextSpec spec = ContextSpec::from_environment();
  {
    const std::lock_guard embedding(Embedding::instance().mutex);
    spec.interrupt = Embedding::instance().interrupt;
    spec.serialize = Embedding::instance().serialize;
  }
  if (spec.world_size > 1) core::log::set_rank(spec.rank);
  core::Trace::start_from_environment(spec.rank, spec.world_size, group::job_name(spec));
  if (spec.rank == 0)
    for (const std::string& warning : core::env::misspelt()) core::log::warn("{}", warning);
  auto context = std::make_unique<Context>(std::move(spec));
  context->impl_->set_error_file(core::env::get("COL_ERROR_FILE").value_or(""));
  // Never destroyed: at exit, other threads may still be inside a call. The operating system closes what is open.
  own.context.store(context.get(), std::memory_order_release);
  return *context.release();
}

void Context::embed(Interrupt interrupt, bool serialize) {
  const std::lock_guard lock(Embedding::instance().mutex);
  Embedding::instance().interrupt = std::move(interrupt);
  Embedding::instance().serialize = serialize;
}

Context::Scope::Scope(Context& context) noexcept : previous_(std::exchange(scoped_context, &context)) {}
Context::Scope::~Scope() {
  scoped_context = previous_;
}

const ContextSpec& Context::spec() const noexcept {
  return impl_->spec();
}
Group Context::init_group(const GroupSpec& spec) {
  return impl_->init_group(spec);
}
Group Context::join_group(std::string_view name, Duration timeout) {
  return impl_->join_group(std::string(name), timeout);
}
Group Context::group(std::string_view name) {
  return impl_->group(name);
}
bool Context::is_initialized(std::string_view name) const {
  return impl_->find(name).has_value();
}
bool Context::destroy_group(std::string_view name) {
  return impl_->destroy_group(name);
}
void Context::finalize() {
  impl_->finalize();
}

}  // namespace col

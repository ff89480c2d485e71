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
#include "group/context_impl.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/world_ranks.hpp"
#include "group/join/end_watch.hpp"
#include "group/join/host_backend.hpp"
#include "group/join/join.hpp"
#include "group/join/meeting.hpp"
#include "store/base/call_limit.hpp"

namespace col {

namespace {

constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

std::shared_ptr<const group::CallSettings> settings_of(const ContextSpec& spec) {
  auto settings = std::make_shared<group::CallSettings>(group::CallSettings::from_environment());
  settings->interrupt = spec.interrupt;
  settings->serialize = spec.serialize;
  if (spec.order == Order::exact)
    throw Error(ErrorCode::invalid_argument, "ContextSpec: order = exact is not there yet; take any, rank or tree");
  if (spec.order != Order::any) settings->order = spec.order;
  return settings;
}

}  // namespace

Context::Impl::Reservation::Reservation(Impl& impl, const std::string& name) : impl_(impl), name_(name) {
  const std::lock_guard lock(impl_.mutex_);
  std::erase_if(impl_.groups_, [](const auto& known) { return known.second.has_gone(); });
  if (!impl_.groups_.try_emplace(name).second)
    throw Error(ErrorCode::already_initialized,
                "the group is already initialized in this process; destroy_collective_group ends it", name);
}

Context::Impl::Reservation::~Reservation() {
  if (fulfilled_) return;
  const std::lock_guard lock(impl_.mutex_);
  impl_.groups_.erase(name_);
}

void Context::Impl::Reservation::fulfil(const std::shared_ptr<Group::State>& state, bool is_kept) {
  const std::lock_guard lock(impl_.mutex_);
  impl_.groups_[name_] = {.state = state, .kept = is_kept ? state : nullptr, .is_made = true};
  impl_.failure_.reset();
  fulfilled_ = true;
}

void Context::Impl::check_spec(const GroupSpec& spec) {
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

// For the launcher.
void Context::Impl::note_epoch(std::string_view group, std::optional<std::uint64_t> epoch) const {
  RankRecord* const own = record();
  if (own == nullptr || group != kJobsGroup) return;
  epoch ? own->enter_epoch(*epoch) : own->leave_epochs();
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
  if (spec_.is_spare && spec.name == kJobsGroup) return join_group(spec.name, {});
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
    if (!adoption.ancestor) note_epoch(spec.name, 0);
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

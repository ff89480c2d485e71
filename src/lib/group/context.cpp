// The registry of groups, and the making of a group.
#include <unistd.h>

#include <algorithm>
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

#include "core/env.hpp"
#include "core/log.hpp"
#include "core/trace/trace.hpp"
#include "group/adopt/adopted_job.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/host_backend.hpp"
#include "group/join/join.hpp"
#include "group/join/member.hpp"
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
  Group group(std::string_view name);
  std::optional<Group> find(std::string_view name) const;
  std::vector<Group> all() const;
  bool destroy_group(std::string_view name);
  void finalize();
  const ContextSpec& spec() const { return spec_; }
  void set_error_file(std::string path) { error_file_ = std::move(path); }

 private:
  class Reservation;

  struct Adoption {
    GroupSpec spec;
    std::string id = {};            // id of the record; empty if the environment describes the group
    std::vector<int> members = {};  // the job's ranks, in order; empty if they are not known before they meet
  };
  // `connected`: if the ranks have connected already.
  Group make_group(const Adoption& adoption, std::optional<group::Connected> connected = {});
  std::optional<Adoption> adoptable(std::string_view name) const;
  void end_record(const group::Core& core) noexcept;
  RankRecord* record() const;
  bool is_forked_child() const;

  ContextSpec spec_;
  std::shared_ptr<Store> job_scope_;  // shared with the groups made from it
  std::uint64_t nonce_;
  const std::int64_t pid_;
  std::string error_file_;
  std::shared_ptr<const group::CallSettings> settings_;  // shared with the groups

  mutable std::mutex mutex_;  // guards the two members below; never held during a wait
  std::map<std::string, std::shared_ptr<Group::State>, std::less<>> groups_;  // null while the group is being made
  std::map<std::string, std::string, std::less<>> left_;  // ids of groups that were left and must not be adopted again
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
    if (!impl_.groups_.emplace(name, nullptr).second)
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

  void fulfil(std::shared_ptr<Group::State> state) {
    const std::lock_guard lock(impl_.mutex_);
    impl_.groups_[name_] = std::move(state);
    fulfilled_ = true;
  }

 private:
  Impl& impl_;
  const std::string& name_;
  bool fulfilled_ = false;
};

Context::Impl::Impl(ContextSpec spec)
    : spec_(std::move(spec)), nonce_(group::random_nonce()), pid_(getpid()), settings_(settings_of(spec_)) {
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

bool Context::Impl::is_forked_child() const {
  return getpid() != pid_;
}

Group Context::Impl::init_group(const GroupSpec& spec) {
  return make_group({.spec = spec});
}

Group Context::Impl::make_group(const Adoption& adoption, std::optional<group::Connected> connected) {
  const GroupSpec& spec = adoption.spec;
  const std::string& adopted_id = adoption.id;
  check_spec(spec);
  if (is_forked_child())
    throw Error(ErrorCode::not_initialized,
                "this process was forked from one that is in the job already; start it with an environment of its own",
                spec.name);
  Reservation reservation(*this, spec.name);
  GroupSpec wanted = spec;
  const bool by_setting = wanted.backend == Backend::automatic && wanted.backend_name.empty();
  if (by_setting) wanted.backend_name = settings_->backend;
  try {
    const bool is_whole_job =
        adoption.members.empty() && spec.world_size == spec_.world_size && spec.rank == spec_.rank;
    group::JoinRequest request{.spec = wanted,
                               .context = spec_,
                               .job_scope = job_scope_,
                               .job = group::job_name(spec_),
                               .process_nonce = nonce_,
                               .record = record(),
                               .members = adoption.members,
                               .write_record = adopted_id.empty(),
                               .names_wire = by_setting && group::is_wire(settings_->backend),
                               .relatives = connected ? &*connected : nullptr};
    if (is_whole_job)
      request.name_ranks = [this](const std::vector<int>& ranks) {
        return group::adopt::ranks_as_launched(ranks, spec_);
      };
    group::GroupParts parts =
        connected && connected->channel ? group::join_connected(request, *std::move(connected)) : group::join(request);
    if (!adopted_id.empty()) parts.core.id = adopted_id;
    parts.core.error_file = error_file_;
    parts.core.settings = settings_;
    parts.core.global_rank = spec_.rank;
    // A call of another thread may still be going on in a group when the context ends.
    const auto self = [weak = weak_from_this(), name = spec.name] {
      auto impl = weak.lock();
      if (!impl)
        throw Error(ErrorCode::not_initialized, "the context of the group has ended; make groups in another one", name);
      return impl;
    };
    group::GroupHost host{
        .family = {.make_group =
                       [self](const GroupSpec& child, std::vector<int> members,
                              std::optional<group::Connected> by_parent) {
                         return self()->make_group({.spec = child, .members = std::move(members)},
                                                   std::move(by_parent));
                       },
                   .has_group = [self](const std::string& child) { return self()->find(child).has_value(); }},
        .all_groups =
            [weak = weak_from_this()] {
              const auto impl = weak.lock();
              return impl ? impl->all() : std::vector<Group>();
            },
        .destroy_group = [self](const std::string& child) { self()->destroy_group(child); }};
    auto state = Group::State::make(std::move(parts), std::move(host));
    reservation.fulfil(state);
    return Group(std::move(state));
  } catch (const Error& cause) {
    const Error error = group::adopt::with_place(cause, spec_);
    group::write_error_file(error_file_, error);
    throw error;
  }
}

std::optional<Group> Context::Impl::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = groups_.find(name);
  if (it == groups_.end() || !it->second) return std::nullopt;
  return Group(it->second);
}

std::vector<Group> Context::Impl::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Group> groups;
  for (const auto& [name, state] : groups_) {
    if (state) groups.push_back(Group(state));
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
  if (auto found = find(name)) return *found;
  if (const auto adoption = adoptable(name)) return make_group(*adoption);
  throw Error(ErrorCode::not_initialized,
              fmt::format("the collective group '{}' is not initialized in this process; call col::init() for "
                          "\"default\", or init_collective_group",
                          name),
              name);
}

bool Context::Impl::destroy_group(std::string_view name) {
  std::shared_ptr<Group::State> state;
  {
    const std::lock_guard lock(mutex_);
    const auto it = groups_.find(name);
    if (it == groups_.end() || !it->second) return false;
    state = std::move(it->second);
    groups_.erase(it);
    // A group without a record cannot be joined again.
    if (state->core().has_record()) left_[state->core().name()] = state->core().id();
  }
  end_record(state->core());
  if (const auto error = state->destroy()) {
    group::write_error_file(error_file_, *error);
    throw *error;
  }
  return true;
}

// A group that is destroyed can be declared again. Best effort: a store that has gone took the record with it.
void Context::Impl::end_record(const group::Core& core) noexcept {
  if (core.rank() != 0 || !core.has_record() || !job_scope_ || is_forked_child()) return;
  const store::CallLimit limit(group::kStoreTime);
  try {
    group::end_record(*job_scope_, core.name(), core.id());
  } catch (const std::exception& e) {
    core::log::debug("group '{}': its record stays: {}", core.name(), e.what());
  }
}

void Context::Impl::finalize() {
  std::vector<std::shared_ptr<Group::State>> states;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = groups_.begin(); it != groups_.end();) {
      if (it->second) {
        left_[it->first] = it->second->core().id();
        states.push_back(std::move(it->second));
        it = groups_.erase(it);
      } else {
        ++it;  // being made by another thread, which will find out by itself
      }
    }
  }
  std::optional<Error> broken, first;
  for (const auto& state : states) {
    if (!broken) broken = state->broken_by();
  }
  for (const auto& state : states) {
    const auto error = state->destroy(broken);
    if (!first) first = error;
  }
  // A forked child's end is not the rank's.
  if (is_forked_child()) return;
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

}  // namespace

Context::Context(ContextSpec spec) : impl_(std::make_shared<Impl>(std::move(spec))) {}
Context::~Context() {
  impl_->leave();  // here: another thread may keep it for a moment longer
}

Context& Context::current() {
  if (scoped_context != nullptr) return *scoped_context;
  // Never destroyed: at exit, other threads may still be inside a call. The operating system closes what is open.
  static Context* const process = [] {
    ContextSpec spec = ContextSpec::from_environment();
    {
      const std::lock_guard lock(Embedding::instance().mutex);
      spec.interrupt = Embedding::instance().interrupt;
      spec.serialize = Embedding::instance().serialize;
    }
    if (spec.world_size > 1) core::log::set_rank(spec.rank);
    core::Trace::start_from_environment(spec.rank, spec.world_size, group::job_name(spec));
    if (spec.rank == 0)
      for (const std::string& warning : core::env::misspelt()) core::log::warn("{}", warning);
    auto context = std::make_unique<Context>(std::move(spec));
    context->impl_->set_error_file(core::env::get("COL_ERROR_FILE").value_or(""));
    return context.release();
  }();
  return *process;
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

#include "group/context.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/backend.hpp>

#include "core/env.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "group/host.hpp"
#include "group/job_notice.hpp"
#include "group/rendezvous.hpp"
#include "group/state.hpp"

namespace col {
namespace {

constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

std::uint64_t random_nonce() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::string job_name(const ContextSpec& spec) {
  return fmt::format("{}#{}", spec.job_id, spec.restart_count);
}

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

// The backend that `spec` asks for, ready to use; else `unavailable`, saying why and what there is.
BackendFactory& choose_backend(const GroupSpec& spec) {
  std::string name = spec.backend_name;
  if (name.empty()) name = spec.backend == Backend::automatic ? "gloo" : std::string(to_string(spec.backend));
  BackendFactory* factory = find_backend(name);
  if (factory == nullptr)
    throw Error(ErrorCode::unavailable,
                fmt::format("backend '{}' is not part of this build of col; it has: {}", name,
                            fmt::join(backend_names(), ", ")),
                spec.name);
  if (const auto reason = factory->unavailable_reason())
    throw Error(ErrorCode::unavailable, fmt::format("backend '{}' cannot be used here: {}", name, *reason), spec.name);
  return *factory;
}

bool share_loopback(const std::vector<PeerInfo>& peers) {
  return std::all_of(peers.begin(), peers.end(), [&](const PeerInfo& peer) {
    return !peer.boot_id.empty() && !peer.network_namespace.empty() && peer.boot_id == peers.front().boot_id &&
           peer.network_namespace == peers.front().network_namespace;
  });
}

void log_group(const GroupSpec& spec, const BackendFactory& factory, const ConnectRequest& request) {
  if (!core::log::enabled(core::log::Level::info)) return;
  std::set<std::string> hosts;
  for (const PeerInfo& peer : request.peers) hosts.insert(peer.hostname);
  core::log::info("group '{}': {} ranks, backend {}, {}, {} {} ({})", spec.name, spec.world_size, factory.name(),
                  factory.describe(request), hosts.size(), hosts.size() == 1 ? "host" : "hosts",
                  fmt::join(hosts, ", "));
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

struct Context::Impl::Meeting {
  std::shared_ptr<Store> scope;
  std::vector<PeerInfo> peers;
  std::uint64_t token = 0;
};

Context::Impl::Impl(ContextSpec spec) : spec_(std::move(spec)), nonce_(random_nonce()) {
  if (spec_.timeout <= Duration::zero()) spec_.timeout = kDefaultTimeout;
  if (spec_.store) job_scope_ = make_prefix_store(spec_.store, "job/" + job_name(spec_));
  if (RankRecord* own = record()) own->join(spec_.rank);
}

Context::Impl::~Impl() {
  try {
    finalize();
  } catch (const std::exception& e) {
    core::log::warn("while leaving the job: {}", e.what());
  }
}

RankRecord* Context::Impl::record() const {
  return spec_.control ? &spec_.control->record(spec_.local_rank) : nullptr;
}

Group Context::Impl::init_group(const GroupSpec& spec) {
  check_spec(spec);
  Reservation reservation(*this, spec.name);
  auto state = make_state(spec);
  reservation.fulfil(state);
  return Group(std::move(state));
}

std::shared_ptr<Group::State> Context::Impl::make_state(const GroupSpec& spec) {
  const Duration timeout = spec.timeout > Duration::zero() ? spec.timeout : spec_.timeout;
  if (spec.world_size == 1) {
    Group::State::Parts parts;
    parts.surroundings.group = spec.name;
    parts.surroundings.peers.resize(1);
    parts.timeout = timeout;
    core::log::info("group '{}': a world of one, no backend needed", spec.name);
    return std::make_shared<Group::State>(std::move(parts));
  }
  BackendFactory& factory = choose_backend(spec);
  if (!job_scope_)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} ranks need a store to find one another; start the program with colrun, or set COL_STORE, "
                    "COL_RANK and COL_WORLD_SIZE",
                    spec.world_size),
        spec.name);
  return connect(spec, factory, timeout);
}

Context::Impl::Meeting Context::Impl::meet(const GroupSpec& spec, std::string_view backend, int instance,
                                           WaitContext& wait) {
  const group::Host& host = group::this_host();
  group::Member self;
  self.world_size = spec.world_size;
  self.backend = backend;
  self.nonce = nonce_;
  self.peer = {spec.rank, spec_.rank, getpid(), host.hostname, host.boot_id, host.network_namespace};

  Meeting meeting;
  meeting.scope = make_prefix_store(job_scope_, fmt::format("group/{}/{}", instance, spec.name));
  group::post_job_notice(*spec_.store, spec.name, spec.rank, job_name(spec_));
  std::vector<group::Member> members;
  try {
    members = group::meet(spec.name, self, *meeting.scope, wait);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    const auto foreign = group::find_foreign_rank(*spec_.store, spec.name, spec.world_size, job_name(spec_));
    if (!foreign) throw;
    throw Error(
        ErrorCode::mismatch,
        fmt::format("ranks disagree on the job: rank {} joins job '{}', rank {} was last seen joining job '{}'; "
                    "give all ranks the same COL_JOB_ID and COL_RESTART_COUNT",
                    spec.rank, job_name(spec_), foreign->rank, foreign->job),
        spec.name, foreign->rank);
  }
  for (group::Member& member : members) meeting.peers.push_back(std::move(member.peer));
  meeting.token = core::Hash().add(job_name(spec_)).add(spec.name).add(instance).add(members.front().nonce).value();
  return meeting;
}

std::shared_ptr<Group::State> Context::Impl::connect(const GroupSpec& spec, BackendFactory& factory, Duration timeout) {
  WaitContext wait(Deadline::after(timeout), spec_.control.get(), record());
  int instance = 0;
  {
    const std::lock_guard lock(mutex_);
    instance = instances_[spec.name];
  }
  Meeting meeting = meet(spec, factory.name(), instance, wait);
  {
    // All have met under this instance: whatever comes of it, none of its keys may be taken for those of the next.
    const std::lock_guard lock(mutex_);
    ++instances_[spec.name];
  }
  ConnectRequest request;
  request.group = spec.name;
  request.rank = spec.rank;
  request.size = spec.world_size;
  request.store = make_prefix_store(meeting.scope, "mesh");
  request.peers = meeting.peers;
  request.same_host = share_loopback(meeting.peers);
  request.token = meeting.token;
  request.socket_ifname = core::env::get("COL_SOCKET_IFNAME").value_or("");

  Group::State::Parts parts;
  parts.channel = factory.connect(request, wait);
  // Every rank has left the meeting, or it would not be connected.
  group::withdraw(spec.rank, *meeting.scope);
  group::remove_job_notice(*spec_.store, spec.name, spec.rank, job_name(spec_));
  if (spec.rank == 0) {
    log_group(spec, factory, request);
    group::GroupRecord record{spec.world_size, std::string(factory.name()), {}};
    for (const PeerInfo& peer : meeting.peers) record.global_ranks.push_back(peer.global_rank);
    job_scope_->set(group::record_key(spec.name), record.encode());
  }
  parts.backend = factory.name();
  parts.token = meeting.token;
  parts.record = record();
  parts.timeout = timeout;
  parts.error_file = error_file_;
  parts.surroundings = {spec.name, spec.rank, std::move(meeting.peers), std::move(meeting.scope), spec_.control, {}};
  return std::make_shared<Group::State>(std::move(parts));
}

std::optional<Group> Context::Impl::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = groups_.find(name);
  if (it == groups_.end() || !it->second) return std::nullopt;
  return Group(it->second);
}

// How to join a group that nobody in this process has named yet: the environment's word, then the store's.
std::optional<GroupSpec> Context::Impl::adoptable(std::string_view name) const {
  namespace env = core::env;
  GroupSpec spec;
  spec.name = name;
  if (env::get("COL_GROUP_NAME") == name) {
    const auto world = env::get_int("COL_GROUP_WORLD_SIZE", 1, 1 << 24);
    const auto rank = env::get_int("COL_GROUP_RANK", 0, 1 << 24);
    if (!world || !rank)
      throw Error(ErrorCode::invalid_argument,
                  "COL_GROUP_NAME is set but COL_GROUP_RANK or COL_GROUP_WORLD_SIZE is not; set all three", name);
    spec.world_size = static_cast<int>(*world);
    spec.rank = static_cast<int>(*rank);
    if (const auto backend = env::get("COL_GROUP_BACKEND")) spec.backend = backend_from_string(*backend);
    return spec;
  }
  if (!job_scope_) return std::nullopt;
  const auto text = job_scope_->get(group::record_key(name));
  if (!text) return std::nullopt;
  const group::GroupRecord record = group::GroupRecord::decode(*text);
  const auto self = std::find(record.global_ranks.begin(), record.global_ranks.end(), spec_.rank);
  if (self == record.global_ranks.end()) return std::nullopt;
  spec.world_size = record.world_size;
  spec.rank = static_cast<int>(self - record.global_ranks.begin());
  if (record.backend != "auto") spec.backend_name = record.backend;
  return spec;
}

Group Context::Impl::group(std::string_view name) {
  if (auto found = find(name)) return *found;
  if (const auto spec = adoptable(name)) return init_group(*spec);
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
  }
  state->destroy();
  return true;
}

void Context::Impl::finalize() {
  std::vector<std::shared_ptr<Group::State>> states;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = groups_.begin(); it != groups_.end();) {
      if (it->second) {
        states.push_back(std::move(it->second));
        it = groups_.erase(it);
      } else {
        ++it;  // being made by another thread, which will find out by itself
      }
    }
  }
  for (const auto& state : states) state->destroy();
  if (RankRecord* own = record()) own->finish();
}

// ---- Context
// ---------------------------------------------------------------------------------------------------------

namespace {

thread_local Context* scoped_context = nullptr;

}  // namespace

Context::Context(ContextSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
Context::~Context() = default;

Context& Context::current() {
  if (scoped_context != nullptr) return *scoped_context;
  // Never destroyed: at exit, other threads may still be inside a call. The operating system closes what is open.
  static Context* const process = [] {
    ContextSpec spec = ContextSpec::from_environment();
    if (spec.world_size > 1) core::log::set_rank(spec.rank);
    auto context = std::make_unique<Context>(std::move(spec));
    context->impl_->set_error_file(core::env::get("COL_ERROR_FILE").value_or(""));
    return context.release();
  }();
  return *process;
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

#include "group/join/join.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "backend/capabilities.hpp"
#include "backend/seats.hpp"
#include "core/clock/this_process.hpp"
#include "core/env.hpp"
#include "core/hash.hpp"
#include "core/joined.hpp"
#include "core/log.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/epoch_words.hpp"
#include "group/join/host.hpp"
#include "group/join/host_backend.hpp"
#include "group/join/job_notice.hpp"
#include "group/join/join_observer.hpp"
#include "group/join/rendezvous.hpp"
#include "group/staging/staging.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

// How long a rank that cannot join tries to say so.
constexpr Duration kDecliningTime = std::chrono::seconds(2);
// When a rank looks why others do not come. Those of another job of the same name may start at the same time; they have
// found one another by then.
constexpr Duration kLookForOthersAfter = std::chrono::milliseconds(1500);
// How long one whose deadline has passed asks the store for the reason. With what it takes back there before, it is
// late by kStoreTime at most.
constexpr Duration kPartingTime = std::chrono::milliseconds(500);

// The GPU that this rank has made current, and whether the backend for GPUs serves it.
void describe_own_gpu(Member& self) {
  const std::optional<int> own = current_gpu();
  if (!own) return;
  BackendFactory& factory = *find_device_backend();
  self.gpu = factory.seat(*own);
  self.why_no_gpu = factory.unavailable_reason().value_or("");
  if (self.why_no_gpu.empty()) self.alone_on_gpu = factory.why_alone();
}

// What `spec` asks for, by name: "automatic" is decided when the ranks know where each of them is.
std::string wanted_backend(const GroupSpec& spec) {
  const bool automatic = spec.backend_name.empty() && spec.backend == Backend::automatic;
  if (automatic) {
    if (!is_usable("shm")) usable_backend("gloo", spec.name);
    return std::string(to_string(Backend::automatic));
  }
  std::string name = spec.backend_name;
  if (name.empty()) name = to_string(spec.backend);
  usable_backend(name, spec.name);
  return name;
}

// Why the backend for GPUs does not serve the group, when its backend is chosen; empty when it does. Decided by what
// all ranks know.
std::string why_not_on_gpus(const Roster& roster) {
  std::vector<backend::Seat> seats;
  for (const Member& member : roster.members) {
    const int rank = member.peer.rank;
    if (member.gpu.empty())
      return fmt::format("rank {} had no GPU when the group was made (cudaSetDevice before that gives it one)", rank);
    if (!member.why_no_gpu.empty()) return fmt::format("on rank {}, {}", rank, member.why_no_gpu);
    seats.push_back({rank, fmt::format("{} {}", member.gpu, member.peer.boot_id), member.alone_on_gpu});
  }
  const auto shared = backend::find_shared_device(seats);
  if (!shared || shared->problem.empty()) return "";
  return fmt::format("ranks {} and {} are on one GPU ({}), and {}", shared->first, shared->second,
                     shared->device.substr(0, shared->device.find(' ')), shared->problem);
}

Member describe_self(const JoinRequest& request, std::string_view backend) {
  const Host& host = this_host();
  Member self;
  self.world_size = request.spec.world_size;
  self.backend = backend;
  self.names_wire = request.names_wire;
  self.nonce = random_nonce();
  self.process_nonce = request.process_nonce;
  self.uses_gpu = current_gpu().has_value();
  if (backend == to_string(Backend::automatic)) describe_own_gpu(self);
  self.peer = {request.spec.rank, request.context.rank,   core::own_pid(),   host.hostname,
               host.boot_id,      host.network_namespace, host.pid_namespace};
  return self;
}

bool is_on_this_host(const PeerInfo& process) {
  return process.boot_id == this_host().boot_id && process.pid_namespace == this_host().pid_namespace;
}

// True if that group stands, as far as can be seen from here, and this process is not in it. If one of its processes
// has ended, it is about to end, or has left its record behind; so it has if they are all where nobody here sees them.
// A process that was in it has left it before the others, and waits for them to come to the next one.
bool stands_without_this_process(const GroupRecord& record) {
  bool is_seen = false;
  for (int rank = 0; rank < record.world_size; ++rank) {
    const auto member = record.process_of(rank);
    if (!member || is_gone(member->pid, member->boot_id, member->pid_namespace)) return false;
    if (!is_on_this_host(*member)) continue;
    if (member->pid == core::own_pid()) return false;
    is_seen = true;
  }
  return is_seen;
}

// A group of that name which stands without this process: it was told of another world, or the rank of another process.
// Unless it is the last look, only what is certain.
void look_for_standing_group(const JoinRequest& request, bool is_last_look) {
  const auto record = find_record(*request.job_scope, request.spec.name);
  if (!record) return;
  const bool stands = stands_without_this_process(*record);
  if (record->world_size == request.spec.world_size) {
    const auto place = static_cast<std::size_t>(request.spec.rank);
    // Other processes of the job may make a group in another order than before.
    const bool is_same_rank =
        place < record->global_ranks.size() && record->global_ranks[place] == request.context.rank;
    const auto twin = stands && is_same_rank ? record->process_of(request.spec.rank) : std::nullopt;
    if (twin && is_on_this_host(*twin)) throw has_already_joined(request.spec.name, *twin);
    return;
  }
  if (!is_last_look && (!stands || record->job_size == request.context.world_size)) return;
  throw Error(ErrorCode::mismatch,
              fmt::format("ranks disagree on the world size: rank {} says {}, but a group of that name stands with {} "
                          "ranks; start all ranks with the same value",
                          request.spec.rank, request.spec.world_size, record->world_size),
              request.spec.name, request.spec.rank);
}

void look_for_other_job(const JoinRequest& request) {
  const GroupSpec& spec = request.spec;
  const auto foreign = find_foreign_rank(*request.context.store, spec.name, spec.world_size, spec.rank, request.job);
  if (!foreign) return;
  throw Error(ErrorCode::mismatch,
              fmt::format("ranks disagree on the job: rank {} joins job '{}', rank {} was last seen joining job '{}'; "
                          "give all ranks the same COL_JOB_ID and COL_RESTART_COUNT",
                          spec.rank, request.job, foreign->rank, foreign->job),
              spec.name, foreign->rank);
}

// Throws why others cannot come, if `body` finds that. A store that does not answer in `time` tells nothing; one that
// fails is heard of by the wait itself.
template <class Body>
void look(Duration time, const Body& body) {
  const store::CallLimit limit(time);
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::mismatch || error.code() == ErrorCode::already_initialized) throw;
  }
}

// After the deadline. Nothing is asked of a store that has let all that time pass.
void look_for_other_world(const JoinRequest& request, JobNotice& notice, const Deadline& deadline) {
  const Duration left = deadline.at() + kStoreTime - Deadline::Clock::now();
  if (left <= Duration::zero()) return;
  look(std::min<Duration>(kPartingTime, left), [&] {
    notice.post();
    request.look_for_others(true);
    look_for_standing_group(request, true);
    look_for_other_job(request);
  });
}

Roster meet_others(const JoinRequest& request, std::string_view backend, Store& name_scope, WaitContext& wait) {
  JobNotice notice(*request.context.store, request.spec.name, request.spec.rank, request.job);
  try {
    const auto began = Deadline::Clock::now();
    const auto when_slow = [&] {
      look(std::min<Duration>(kStoreTime, wait.deadline().remaining()), [&] {
        notice.post();
        if (Deadline::Clock::now() - began < kLookForOthersAfter) return;
        request.look_for_others(false);
        look_for_standing_group(request, false);
      });
    };
    const MeetingHelp help{.when_slow = when_slow, .name = request.name_ranks};
    Roster roster = meet(request.spec.name, describe_self(request, backend), name_scope, wait, help);
    notice.remove();
    return roster;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::timeout) look_for_other_world(request, notice, wait.deadline());
    throw;
  }
}

Roster roster_of(const Connected& relatives) {
  Roster roster;
  roster.token = relatives.token;
  for (const PeerInfo& peer : relatives.peers) {
    roster.members.emplace_back();
    roster.members.back().peer = peer;
    roster.members.back().uses_gpu = relatives.may_stage;
  }
  return roster;
}

void log_group(const GroupSpec& spec, const BackendFactory& factory, const ConnectRequest& request) {
  if (!core::log::enabled(core::log::Level::info)) return;
  std::set<std::string> hosts;
  for (const PeerInfo& peer : request.peers) hosts.insert(peer.hostname);
  core::log::info("group '{}': {} ranks, backend {}, {}, {} {} ({})", spec.name, spec.world_size, factory.name(),
                  factory.describe(request), hosts.size(), hosts.size() == 1 ? "host" : "hosts",
                  core::joined(hosts, ", "));
}

// Runs on rank 0 when the group stands. The others are using it already, so nothing of it may fail the group. `met`:
// the ranks as they have announced themselves, if they have.
void publish(const JoinRequest& request, const BackendFactory& factory, const ConnectRequest& connected,
             const GroupParts& parts, const std::vector<PeerInfo>& met = {}) noexcept {
  const store::CallLimit limit(kStoreTime);
  try {
    log_group(request.spec, factory, connected);
    if (request.write_record) write_record(request, parts, met);
  } catch (const std::exception& e) {
    core::log::warn("group '{}': cannot write its record: {}", request.spec.name, e.what());
  }
}

// The part of the store that is the group's own: a token is never used again, so nothing that an earlier group of the
// name has left is ever read.
void set_scope(GroupParts& parts, const JoinRequest& request, const std::shared_ptr<Store>& name_scope,
               std::uint64_t token) {
  parts.core.id = fmt::format("{:016x}", token);
  parts.core.surroundings.group = request.spec.name;
  parts.core.surroundings.token = token;
  parts.core.surroundings.rank = request.spec.rank;
  parts.core.surroundings.scope = scope_of(name_scope, token);
  parts.core.surroundings.control = request.context.control;
  parts.core.surroundings.record = request.record;
}

std::shared_ptr<Store> name_scope_of(const JoinRequest& request) {
  return meeting_place(request.context.store, request.job, request.spec.name);
}

// The record of an earlier group of the name must not speak for this one.
void begin_record(const JoinRequest& request, std::uint64_t token) {
  if (request.record == nullptr) return;
  request.record->begin(request.spec.name, 0, "init_group", token);
  request.record->end();
}

// The others are not to wait for this rank, which cannot use the backend that is wanted.
void decline_for(const JoinRequest& request, const Error& why) noexcept {
  if (!request.job_scope) return;
  try {
    std::string name = request.spec.backend_name;
    if (name.empty()) name = to_string(request.spec.backend);
    const Member self = describe_self(request, with_reason(name, why.message()));
    WaitContext wait(Deadline::after(kDecliningTime), request.context.control.get());
    decline(request.spec.name, self, *name_scope_of(request), wait);
  } catch (const std::exception&) {  // then they wait for it until their deadline
  }
}

// All have come. So nobody looks whether one has ended before: whoever has returned may. But those who have returned
// may use the group: they are to hear the cause, and not only that this rank has gone.
std::unique_ptr<Channel> connect_draft(backend::Draft& draft, const JoinRequest& request, const ConnectRequest& connect,
                                       Store& scope, const Deadline& deadline, JoinObserver& observer) {
  observer.all_have_come();
  WaitContext wait(deadline, request.context.control.get(), request.record, &observer, &request.context.interrupt);
  try {
    return draft.connect(connect, wait);
  } catch (const Error& error) {
    throw publish_failure(scope, error, request.spec.rank);
  }
}

// A lost connection may be that of a rank that has left because of a death elsewhere: then the dead one is named.
std::unique_ptr<Channel> connect_all(BackendFactory& factory, const ConnectRequest& connect, WaitContext& wait,
                                     const JoinObserver& observer) {
  try {
    return factory.connect(connect, wait);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_lost) observer.look_for_deaths();
    throw;
  }
}

Roster roster_of(const JoinRequest& request, const std::string& wanted, Store& name_scope, WaitContext& wait) {
  if (request.agreed != nullptr) return {.token = request.agreed->token, .members = request.agreed->members};
  return request.relatives != nullptr ? roster_of(*request.relatives) : meet_others(request, wanted, name_scope, wait);
}

GroupParts join_others(const JoinRequest& request, const std::string& wanted, JoinObserver& observer,
                       Duration timeout) {
  const GroupSpec& spec = request.spec;
  WaitContext wait(request.until.value_or(Deadline::after(timeout)), request.context.control.get(), request.record,
                   &observer, &request.context.interrupt);
  // So that others see what this rank waits in.
  if (request.record != nullptr) request.record->begin(spec.name, 0, "init_group", 0);
  const auto name_scope = name_scope_of(request);
  Connected* const relatives = request.relatives;
  const Roster roster = roster_of(request, wanted, *name_scope, wait);

  GroupParts parts;
  set_scope(parts, request, name_scope, roster.token);
  for (const Member& member : roster.members) {
    parts.core.surroundings.peers.push_back(member.peer);
    parts.connections.may_stage |= member.uses_gpu;
  }
  observer.set_peers(parts.core.surroundings.peers);
  const auto choose = [&](std::string_view name) -> BackendFactory& {
    const auto says_wire = [](const Member& member) { return member.names_wire; };
    const bool names_wire = std::all_of(roster.members.begin(), roster.members.end(), says_wire);
    return usable_backend(fitting_backend(name, names_wire, parts.core.surroundings.peers), spec.name);
  };
  const bool automatic = wanted == to_string(Backend::automatic);
  std::string why_not = automatic ? why_not_on_gpus(roster) : fmt::format("the group's backend is {}", wanted);
  BackendFactory& factory = choose(automatic && why_not.empty() ? gpu_backend_name() : wanted);

  ConnectRequest connect;
  connect.group = spec.name;
  connect.rank = spec.rank;
  connect.size = spec.world_size;
  connect.store = make_prefix_store(parts.core.surroundings.scope, "mesh");
  connect.peers = parts.core.surroundings.peers;
  connect.same_host = share_loopback(parts.core.surroundings.peers);
  connect.token = roster.token;
  connect.socket_ifname = core::env::get("COL_SOCKET_IFNAME").value_or("");
  connect.is_high_priority_stream = spec.is_high_priority_stream;
  connect.settings = spec.nccl_settings;
  if (factory.device() == Device::Type::cpu) {
    parts.connections.why_staged = std::move(why_not);
  } else {
    parts.connections.may_stage = true;
    // Host memory first: a rank that fails to start its GPU is then noticed as in any call.
    BackendFactory& on_host = choose(to_string(Backend::automatic));
    ConnectRequest beside = connect;
    beside.store = make_prefix_store(parts.core.surroundings.scope, "host mesh");
    parts.connections.host_channel = connect_all(on_host, beside, wait, observer);
    parts.connections.host_backend = on_host.name();
  }
  if (relatives != nullptr && relatives->draft) {
    parts.connections.channel =
        connect_draft(*relatives->draft, request, connect, *parts.core.surroundings.scope, wait.deadline(), observer);
  } else if (relatives != nullptr && relatives->on_gpu != nullptr) {
    parts.connections.channel = std::move(relatives->on_gpu);
  } else {
    parts.connections.channel = connect_all(factory, connect, wait, observer);
  }
  parts.connections.backend = factory.name();
  if (spec.rank == 0) {
    // Every rank has read it, or it would not be connected.
    if (relatives == nullptr && request.agreed == nullptr) forget(roster, *name_scope, wait);
    publish(request, factory, connect, parts, roster.peers);
  }
  parts.core.device = parts.connections.device();
  parts.core.timeout = timeout;
  parts.is_high_priority_stream = spec.is_high_priority_stream;
  parts.nccl_settings = spec.nccl_settings;
  begin_record(request, roster.token);
  return parts;
}

// The one that a world of one needs, which copies host memory by itself; null otherwise.
BackendFactory* backend_of_device(const GroupSpec& spec) {
  std::string name = spec.backend_name;
  if (name.empty() && spec.backend != Backend::automatic) name = to_string(spec.backend);
  if (name.empty() && current_gpu() && is_usable(gpu_backend_name())) name = gpu_backend_name();
  const BackendFactory* const found = name.empty() ? nullptr : find_backend(name);
  const bool is_needed = found != nullptr && found->device() != Device::Type::cpu;
  return is_needed ? &usable_backend(name, spec.name) : nullptr;
}

GroupParts join_alone(const JoinRequest& request, JoinObserver& observer, Duration timeout) {
  const GroupSpec& spec = request.spec;
  GroupParts parts;
  parts.core.surroundings.group = spec.name;
  parts.core.surroundings.peers.resize(1);
  parts.core.surroundings.peers.front().global_rank = request.context.rank;
  parts.core.surroundings.scope = make_memory_store();  // for a wait for oneself, which asks what the others say
  parts.core.timeout = timeout;
  parts.is_high_priority_stream = spec.is_high_priority_stream;
  parts.nccl_settings = spec.nccl_settings;
  BackendFactory* const factory = backend_of_device(spec);
  if (factory == nullptr) {
    core::log::info("group '{}': a world of one, no backend needed", spec.name);
    return parts;
  }
  WaitContext wait(Deadline::after(timeout), request.context.control.get(), request.record, &observer,
                   &request.context.interrupt);
  ConnectRequest connect;
  connect.group = spec.name;
  connect.store = parts.core.surroundings.scope;
  connect.peers = parts.core.surroundings.peers;
  connect.is_high_priority_stream = spec.is_high_priority_stream;
  connect.settings = spec.nccl_settings;
  parts.connections.channel = factory->connect(connect, wait);
  parts.connections.backend = factory->name();
  parts.core.device = parts.connections.device();
  return parts;
}

}  // namespace

Member announcement(const JoinRequest& request) {
  return describe_self(request, wanted_backend(request.spec));
}

GroupRecord await_record(Store& job_scope, std::string_view group, const Deadline& deadline, const ContextSpec& spec,
                         bool sleeps) {
  WaitContext wait(deadline, spec.control.get(), nullptr, nullptr, &spec.interrupt);
  if (sleeps) wait.sleep_until_told();
  try {
    job_scope.wait(record_key(group), wait);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    throw no_such_group(group);
  }
  if (auto record = find_record(job_scope, group)) return *std::move(record);
  throw no_such_group(group);  // it was destroyed
}

std::uint64_t random_nonce() {
  std::uint64_t nonce = 0;
  if (!core::random_bytes(std::as_writable_bytes(std::span(&nonce, 1))))
    throw Error(ErrorCode::io, "the system gives no random bytes; look whether a sandbox forbids getrandom(2)");
  return nonce;
}

bool share_loopback(const std::vector<PeerInfo>& peers) {
  return std::all_of(peers.begin(), peers.end(), [&](const PeerInfo& peer) {
    return !peer.boot_id.empty() && !peer.network_namespace.empty() && peer.boot_id == peers.front().boot_id &&
           peer.network_namespace == peers.front().network_namespace;
  });
}

std::string job_name(const ContextSpec& spec) {
  return fmt::format("{}#{}", spec.job_id, spec.restart_count);
}

std::shared_ptr<Store> job_scope(const ContextSpec& spec) {
  return make_prefix_store(spec.store, "job/" + job_name(spec));
}

// By a number: it is in every key that passes, and a job's name is long.
std::shared_ptr<Store> meeting_place(const std::shared_ptr<Store>& store, std::string_view job,
                                     std::string_view group) {
  return make_prefix_store(store, fmt::format("{:x}", core::Hash().add(job).add("group").add(group).value()));
}

std::shared_ptr<Store> scope_of(const std::shared_ptr<Store>& place, std::uint64_t token) {
  return make_prefix_store(place, fmt::format("{:016x}", token));
}

void write_record(const JoinRequest& request, const GroupParts& parts, const std::vector<PeerInfo>& met,
                  const std::string& first_id) {
  GroupRecord record{parts.core.id, request.spec.world_size, parts.connections.backend, {}};
  for (const PeerInfo& peer : parts.core.surroundings.peers) record.global_ranks.push_back(peer.global_rank);
  record.set_processes(met);
  record.first_id = first_id;
  if (!met.empty()) record.job_size = request.context.world_size;
  request.job_scope->set(record_key(request.spec.name), record.encode());
}

GroupParts join_connected(const JoinRequest& request, Connected connected) {
  const GroupSpec& spec = request.spec;
  GroupParts parts;
  set_scope(parts, request, name_scope_of(request), connected.token);
  parts.core.surroundings.peers = std::move(connected.peers);
  parts.core.timeout = spec.timeout;
  parts.connections.channel = std::move(connected.channel);
  parts.connections.may_stage = connected.may_stage;
  parts.connections.why_staged = fmt::format("the group's backend is {}", connected.backend);
  parts.connections.backend = std::move(connected.backend);
  parts.is_high_priority_stream = spec.is_high_priority_stream;
  parts.nccl_settings = spec.nccl_settings;
  if (spec.rank == 0) {
    ConnectRequest connect;
    connect.size = spec.world_size;
    connect.peers = parts.core.surroundings.peers;
    publish(request, *find_backend(parts.connections.backend), connect, parts);
  }
  begin_record(request, connected.token);
  return parts;
}

GroupParts join(const JoinRequest& request) {
  const GroupSpec& spec = request.spec;
  const Duration timeout = spec.timeout > Duration::zero() ? spec.timeout : request.context.timeout;
  JoinObserver observer(request);
  const auto leave_record = [&](int held_up_by) {
    if (request.record == nullptr) return;
    request.record->fail(held_up_by);
    request.record->end(spec.name);
  };
  try {
    if (spec.world_size == 1) return join_alone(request, observer, timeout);
    std::string wanted;
    try {
      wanted = wanted_backend(spec);
    } catch (const Error& error) {
      decline_for(request, error);
      throw;
    }
    if (!request.job_scope)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} ranks need a store to find one another; start the program with colrun, or set COL_STORE, "
                      "COL_RANK and COL_WORLD_SIZE",
                      spec.world_size),
          spec.name);
    GroupParts parts = join_others(request, wanted, observer, timeout);
    observer.withdraw();
    return parts;
  } catch (const Error& error) {
    leave_record(error.code() == ErrorCode::timeout ? observer.held_up_by() : -1);
    if (const auto interruption = WaitContext::take_interruption()) std::rethrow_exception(interruption);
    if (error.group() == spec.name) throw;
    // This error comes from a wait, which knows neither the group nor its ranks. The rank of an abort cause is one of
    // the job.
    throw Error(error.code(), error.message(), spec.name, observer.group_rank(error.rank()), error.world_rank());
  } catch (...) {
    leave_record(-1);
    if (const auto interruption = WaitContext::take_interruption()) std::rethrow_exception(interruption);
    throw;
  }
}

}  // namespace col::group

#include "group/join/member.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/joined.hpp"
#include "group/call/operation.hpp"
#include "group/join/decoded.hpp"
#include "json/json_fields.hpp"

namespace col::group {

// What the kernel calls "net:[4026531833]", without what is the same everywhere. Texts of other kinds stay as they are.
struct Namespace {
  std::string_view kind;
};

std::string shortened(std::string_view name, Namespace space) {
  const std::string begin = fmt::format("{}:[", space.kind);
  const bool is_usual = name.starts_with(begin) && name.ends_with(']');
  return std::string(is_usual ? name.substr(begin.size(), name.size() - begin.size() - 1) : name);
}

std::string restored(const std::string& name, Namespace space) {
  const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? fmt::format("{}:[{}]", space.kind, name) : name;
}

constexpr Namespace kNetwork{"net"}, kPids{"pid"};
const std::string kUsualBackend(to_string(Backend::automatic));

// Each rank writes one, and rank 0 reads them all: so names are short, and what is as usual is left out.
template <class Visit>
void fields(Member& member, Visit& visit) {
  auto& [world_size, backend, names_wire, version, nonce, process_nonce, uses_gpu, gpu, why_no_gpu, alone_on_gpu,
         peer] = member;
  auto& [rank, global_rank, pid, hostname, boot_id, network_namespace, pid_namespace] = peer;
  visit("w", world_size);
  visit.if_set("b", backend, backend != kUsualBackend);
  visit.if_set("names_wire", names_wire, names_wire);
  visit("v", version);
  visit("n", nonce);
  visit("p", process_nonce);
  visit.if_set("uses_gpu", uses_gpu, uses_gpu);
  visit.if_set("gpu", gpu, !gpu.empty());
  visit.if_set("no_nccl", why_no_gpu, !why_no_gpu.empty());
  visit.if_set("alone_on_gpu", alone_on_gpu, !alone_on_gpu.empty());
  visit("r", rank);
  visit.if_set("in_job", global_rank, global_rank != 0);
  visit("pid", pid);
  visit("h", hostname);
  visit("boot", boot_id);
  visit("net", network_namespace);
  visit("ns", pid_namespace);
}

namespace {

// Where ranks are.
struct Where {
  std::string hostname;
  int boot = -1, network = -1, pids = -1;  // numbers of texts; -1: unknown

  bool operator==(const Where&) const = default;
};

// Texts that only have to be compared, by the order in which they first appear: shorter than the ids of kernels.
class Numbered {
 public:
  int number_of(const std::string& text) {
    return text.empty() ? -1 : numbers_.emplace(text, static_cast<int>(numbers_.size())).first->second;
  }
  static std::string text_of(int number) { return number < 0 ? std::string() : std::to_string(number); }

 private:
  std::map<std::string, int> numbers_;
};

// What only some ranks have to say.
struct Special {
  int rank = 0;
  bool names_wire = false, uses_gpu = false;
  std::string gpu = {}, why_no_gpu = {}, alone_on_gpu = {};
};

template <class Visit>
void fields(Special& special, Visit& visit) {
  auto& [rank, names_wire, uses_gpu, gpu, why_no_gpu, alone_on_gpu] = special;
  visit("rank", rank);
  visit.if_set("names_wire", names_wire, names_wire);
  visit.if_set("uses_gpu", uses_gpu, uses_gpu);
  visit.if_set("gpu", gpu, !gpu.empty());
  visit.if_set("no_nccl", why_no_gpu, !why_no_gpu.empty());
  visit.if_set("alone_on_gpu", alone_on_gpu, !alone_on_gpu.empty());
}

struct RosterText {
  std::uint64_t token = 0;
  std::vector<std::string> hosts = {};                              // their names
  std::vector<int> boots = {}, networks = {}, process_spaces = {};  // by host: where it is, by number
  std::vector<int> host_of = {};                                    // by rank: a place in `hosts`
  std::vector<std::int64_t> pids = {};                              // by rank
  std::vector<int> global_ranks = {};                               // by rank; empty: as in the group
  std::vector<std::uint64_t> processes = {};                        // by rank; empty: nobody asks
  std::vector<Special> special = {};
};

template <class Visit>
void fields(RosterText& roster, Visit& visit) {
  auto& [token, hosts, boots, networks, process_spaces, host_of, pids, global_ranks, processes, special] = roster;
  visit("token", token);
  visit("hosts", hosts);
  visit("boots", boots);
  visit("nets", networks);
  visit("ns", process_spaces);
  visit("host_of", host_of);
  visit("pids", pids);
  visit("in_job", global_ranks);
  visit.if_set("processes", processes, !processes.empty());
  visit("special", special);
}

}  // namespace

template <class Visit>
void fields(GroupRecord::Place& place, Visit& visit) {
  auto& [hostname, boot_id, pid_namespace] = place;
  visit("name", hostname);
  visit("boot", boot_id);
  visit("ns", pid_namespace);
}

template <class Visit>
void fields(GroupRecord& record, Visit& visit) {
  auto& [id, world_size, backend, global_ranks, processes, hosts, first_id, job_size] = record;
  visit("id", id);
  visit("world_size", world_size);
  visit("backend", backend);
  visit("ranks", global_ranks);
  visit.if_set("processes", processes, !processes.empty());
  visit.if_set("hosts", hosts, !hosts.empty());
  visit.if_set("first_id", first_id, !first_id.empty());
  visit.if_set("job_size", job_size, job_size != 0);
}

namespace {

struct Setting {
  std::string_view name;
  std::function<std::string(const Member&)> value;
  std::string_view remedy = "start all ranks with the same value";
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"version of col", [](const Member& m) { return m.version; }, "install the same version on all hosts"},
      {"world size", [](const Member& m) { return std::to_string(m.world_size); }},
      {"backend", [](const Member& m) { return fmt::format("'{}'", m.backend); }},
  };
  return all;
}

std::string who(const std::vector<int>& ranks, const std::map<int, Member>& members) {
  std::set<std::string> hosts;
  for (const int rank : ranks) hosts.insert(members.at(rank).peer.hostname);
  constexpr std::size_t kMostHosts = 4;
  if (ranks.size() > 1)
    return fmt::format("{}{} say", ranks_text(ranks),
                       hosts.size() > kMostHosts ? "" : fmt::format(" (on {})", core::joined(hosts, ", ")));
  const PeerInfo& peer = members.at(ranks.front()).peer;
  return fmt::format("rank {} (pid {} on {}) says", peer.rank, peer.pid, peer.hostname);
}

std::optional<Error> disagreement_on(const Setting& setting, std::string_view group,
                                     const std::map<int, Member>& members) {
  std::map<std::string, std::vector<int>> sayers;
  for (const auto& [rank, member] : members) sayers[setting.value(member)].push_back(rank);
  if (sayers.size() < 2) return std::nullopt;
  const auto most = std::max_element(sayers.begin(), sayers.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool majority = 2 * most->second.size() > members.size();
  int odd = -1;
  std::vector<std::string> claims;
  for (const auto& [value, ranks] : sayers) {
    if (majority && value != most->first && odd < 0) odd = ranks.front();
    claims.push_back(fmt::format("{} {}", who(ranks, members), value));
  }
  return Error(
      ErrorCode::mismatch,
      fmt::format("ranks disagree on the {}: {}; {}", setting.name, core::joined(claims, ", "), setting.remedy), group,
      odd);
}

constexpr char kBeforeReason = '\n';

// Of the first rank that cannot use what it wants.
std::optional<Error> inability(std::string_view group, const std::map<int, Member>& members) {
  for (const auto& [rank, member] : members) {
    const std::size_t end = member.backend.find(kBeforeReason);
    if (end == std::string::npos) continue;
    return Error(ErrorCode::unavailable,
                 fmt::format("{}: {}; or name a backend that all hosts have, such as gloo (COL_BACKEND=gloo)",
                             who({rank}, members), member.backend.substr(end + 1)),
                 group, rank);
  }
  return std::nullopt;
}

}  // namespace

std::string own_version() {
  return std::string(version());
}

std::string with_reason(std::string_view backend, std::string_view why_not) {
  return fmt::format("{}{}{}", backend, kBeforeReason, why_not);
}

std::string wanted_backend(const Member& member) {
  return member.backend.substr(0, member.backend.find(kBeforeReason));
}

bool gave_up_another(const Member& member, std::string_view backend) {
  const std::size_t end = member.backend.find(kBeforeReason);
  return end != std::string::npos && member.backend.substr(0, end) != backend;
}

// Names are arbitrary bytes, JSON strings are UTF-8: what is not is replaced. They are for messages and comparison.
// As fields() has it: the rank in the job counts from 1 there, and is 0 if it is as in the group.
std::string Member::encode() const {
  Member text = *this;
  text.peer.global_rank = peer.global_rank == peer.rank ? 0 : peer.global_rank + 1;
  text.peer.network_namespace = shortened(peer.network_namespace, kNetwork);
  text.peer.pid_namespace = shortened(peer.pid_namespace, kPids);
  return core::json_line(text);
}

Member Member::decode(std::string_view text) {
  auto member = decoded<Member>(text, "announcement of a rank");
  PeerInfo& peer = member.peer;
  if (member.backend.empty()) member.backend = kUsualBackend;
  peer.global_rank = peer.global_rank == 0 ? peer.rank : peer.global_rank - 1;
  peer.network_namespace = restored(peer.network_namespace, kNetwork);
  peer.pid_namespace = restored(peer.pid_namespace, kPids);
  return member;
}

bool agree(const Member& a, const Member& b) {
  return std::all_of(settings().begin(), settings().end(),
                     [&](const Setting& setting) { return setting.value(a) == setting.value(b); });
}

std::optional<Error> disagreement(std::string_view group, const std::map<int, Member>& members) {
  if (auto error = inability(group, members)) return error;
  for (const Setting& setting : settings()) {
    if (auto error = disagreement_on(setting, group, members)) return error;
  }
  return std::nullopt;
}

std::string encode_roster(std::uint64_t token, const std::vector<Member>& members, bool has_processes) {
  RosterText roster{.token = token};
  const bool as_in_job = std::all_of(members.begin(), members.end(),
                                     [](const Member& one) { return one.peer.global_rank == one.peer.rank; });
  std::vector<Where> hosts;
  Numbered boots, networks, process_spaces;
  for (const Member& member : members) {
    const PeerInfo& peer = member.peer;
    const Where where{peer.hostname, boots.number_of(peer.boot_id), networks.number_of(peer.network_namespace),
                      process_spaces.number_of(peer.pid_namespace)};
    // Neighbours in rank are mostly on one host.
    const auto found = std::find(hosts.rbegin(), hosts.rend(), where);
    roster.host_of.push_back(static_cast<int>(hosts.rend() - found) - 1);
    if (found == hosts.rend()) {
      roster.host_of.back() = static_cast<int>(hosts.size());
      hosts.push_back(where);
    }
    roster.pids.push_back(peer.pid);
    if (has_processes) roster.processes.push_back(member.process_nonce);
    if (!as_in_job) roster.global_ranks.push_back(peer.global_rank);
    if (member.names_wire || member.uses_gpu || !member.gpu.empty() || !member.why_no_gpu.empty())
      roster.special.push_back(
          {peer.rank, member.names_wire, member.uses_gpu, member.gpu, member.why_no_gpu, member.alone_on_gpu});
  }
  for (Where& where : hosts) {
    roster.hosts.push_back(std::move(where.hostname));
    roster.boots.push_back(where.boot);
    roster.networks.push_back(where.network);
    roster.process_spaces.push_back(where.pids);
  }
  return core::json_line(roster);
}

std::vector<Member> decode_roster(std::string_view text, std::uint64_t token, const Member& self) {
  auto roster = decoded<RosterText>(text, "roster of a group");
  const std::size_t size = roster.host_of.size();
  const std::size_t hosts = roster.hosts.size();
  const auto fits = [&](int host) { return host >= 0 && static_cast<std::size_t>(host) < hosts; };
  if (roster.token != token || roster.boots.size() != hosts || roster.networks.size() != hosts ||
      roster.process_spaces.size() != hosts || size != static_cast<std::size_t>(self.world_size) ||
      roster.pids.size() != size || (!roster.global_ranks.empty() && roster.global_ranks.size() != size) ||
      (!roster.processes.empty() && roster.processes.size() != size) ||
      !std::all_of(roster.host_of.begin(), roster.host_of.end(), fits))
    throw Error(ErrorCode::internal, "the roster of a group in the store is of another group");
  std::vector<Member> members(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    Member& member = members[rank];
    member.world_size = self.world_size;
    member.backend = self.backend;
    member.version = self.version;
    if (!roster.processes.empty()) member.process_nonce = roster.processes[rank];
    const auto host = static_cast<std::size_t>(roster.host_of[rank]);
    const auto number = static_cast<int>(rank);
    member.peer = {number,
                   roster.global_ranks.empty() ? number : roster.global_ranks[rank],
                   roster.pids[rank],
                   roster.hosts[host],
                   Numbered::text_of(roster.boots[host]),
                   Numbered::text_of(roster.networks[host]),
                   Numbered::text_of(roster.process_spaces[host])};
  }
  for (Special& special : roster.special) {
    if (special.rank < 0 || static_cast<std::size_t>(special.rank) >= size) continue;
    Member& member = members[static_cast<std::size_t>(special.rank)];
    member.names_wire = special.names_wire;
    member.uses_gpu = special.uses_gpu;
    member.gpu = std::move(special.gpu);
    member.why_no_gpu = std::move(special.why_no_gpu);
    member.alone_on_gpu = std::move(special.alone_on_gpu);
  }
  return members;
}

int size_of_roster(std::string_view text) {
  return static_cast<int>(decoded<RosterText>(text, "roster of a job").host_of.size());
}

std::optional<Member> first_of_host(std::string_view text, const Member& self) {
  const auto roster = decoded<RosterText>(text, "roster of a job");
  const auto own = static_cast<std::size_t>(self.peer.rank);
  const std::size_t size = roster.host_of.size();
  const bool is_in = own < size && roster.processes.size() == size && roster.pids.size() == size &&
                     roster.processes[own] == self.process_nonce;
  if (!is_in) return std::nullopt;
  const auto first = static_cast<std::size_t>(
      std::find(roster.host_of.begin(), roster.host_of.end(), roster.host_of[own]) - roster.host_of.begin());
  Member member = self;
  member.process_nonce = roster.processes[first];
  member.peer.rank = member.peer.global_rank = static_cast<int>(first);
  member.peer.pid = roster.pids[first];
  return member;
}

void GroupRecord::set_processes(const std::vector<PeerInfo>& peers) {
  for (const PeerInfo& peer : peers) {
    const Place place{peer.hostname, peer.boot_id, peer.pid_namespace};
    const auto found = std::find(hosts.begin(), hosts.end(), place) - hosts.begin();
    if (found == static_cast<std::ptrdiff_t>(hosts.size())) hosts.push_back(place);
    processes.emplace_back(peer.pid, static_cast<int>(found));
  }
}

std::optional<PeerInfo> GroupRecord::process_of(int rank) const {
  if (rank < 0 || static_cast<std::size_t>(rank) >= processes.size()) return std::nullopt;
  const auto& [pid, host] = processes[static_cast<std::size_t>(rank)];
  if (host < 0 || static_cast<std::size_t>(host) >= hosts.size()) return std::nullopt;
  const Place& place = hosts[static_cast<std::size_t>(host)];
  return PeerInfo{.rank = rank,
                  .pid = pid,
                  .hostname = place.hostname,
                  .boot_id = place.boot_id,
                  .network_namespace = {},
                  .pid_namespace = place.pid_namespace};
}

Error has_already_joined(std::string_view group, const PeerInfo& other) {
  return Error(
      ErrorCode::already_initialized,
      fmt::format("rank {} (pid {} on {}) has already joined: this rank was started twice, or restarted under the "
                  "same COL_JOB_ID and COL_RESTART_COUNT; end the other process or start the job under a new id",
                  other.rank, other.pid, other.hostname),
      group, other.rank);
}

std::string GroupRecord::encode() const {
  return core::json_line(*this);
}

GroupRecord GroupRecord::decode(std::string_view text) {
  return decoded<GroupRecord>(text, "record of a group");
}

std::string record_key(std::string_view group) {
  return "group record/" + std::string(group);
}

namespace {

// False if there is none with that id. An empty id is any.
template <class Make>
bool replace_record(Store& job_scope, std::string_view group, std::string_view id, const Make& make) {
  const std::string key = record_key(group);
  for (;;) {
    const auto text = job_scope.get(key);
    if (!text || text->empty()) return false;
    if (!id.empty() && GroupRecord::decode(*text).id != id) return false;
    if (job_scope.compare_set(key, *text, make(*text)) == text) return true;
  }
}

}  // namespace

std::optional<GroupRecord> find_record(Store& job_scope, std::string_view group) {
  const auto text = job_scope.get(record_key(group));
  if (!text || text->empty()) return std::nullopt;
  return GroupRecord::decode(*text);
}

bool end_record(Store& job_scope, std::string_view group, std::string_view id) {
  return replace_record(job_scope, group, id, [](const std::string&) { return std::string(); });
}

void forget_processes(Store& job_scope, std::string_view group, std::string_view id) {
  replace_record(job_scope, group, id, [](const std::string& text) {
    GroupRecord record = GroupRecord::decode(text);
    record.processes.clear();
    return record.encode();
  });
}

}  // namespace col::group

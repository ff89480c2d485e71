#include "group/join/member.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "group/join/decoded.hpp"
#include "json/json_fields.hpp"

namespace col::group {

template <class Visit>
void fields(Member& member, Visit& visit) {
  auto& [world_size, backend, names_wire, protocol, nonce, process_nonce, uses_gpu, gpu, why_no_gpu, alone_on_gpu,
         peer] = member;
  auto& [rank, global_rank, pid, hostname, boot_id, network_namespace, pid_namespace] = peer;
  visit("world_size", world_size);
  visit("backend", backend);
  visit("names_wire", names_wire);
  visit("protocol", protocol);
  visit("nonce", nonce);
  visit("process_nonce", process_nonce);
  visit("uses_gpu", uses_gpu);
  visit("gpu", gpu);
  visit("no_nccl", why_no_gpu);
  visit("alone_on_gpu", alone_on_gpu);
  visit("rank", rank);
  visit("global_rank", global_rank);
  visit("pid", pid);
  visit("hostname", hostname);
  visit("boot_id", boot_id);
  visit("network_namespace", network_namespace);
  visit("pid_namespace", pid_namespace);
}

template <class Visit>
void fields(GroupRecord& record, Visit& visit) {
  auto& [id, world_size, backend, global_ranks] = record;
  visit("id", id);
  visit("world_size", world_size);
  visit("backend", backend);
  visit("ranks", global_ranks);
}

namespace {

struct Setting {
  std::string_view name;
  std::function<std::string(const Member&)> value;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"world size", [](const Member& m) { return std::to_string(m.world_size); }},
      {"backend", [](const Member& m) { return fmt::format("'{}'", m.backend); }},
      {"version of col's protocol", [](const Member& m) { return std::to_string(m.protocol); }},
  };
  return all;
}

std::string who(const std::vector<int>& ranks, const std::map<int, Member>& members) {
  if (ranks.size() > 1) return fmt::format("ranks {} say", fmt::join(ranks, ", "));
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
  return Error(ErrorCode::mismatch,
               fmt::format("ranks disagree on the {}: {}; start all ranks with the same value", setting.name,
                           fmt::join(claims, ", ")),
               group, odd);
}

}  // namespace

// Names are arbitrary bytes, JSON strings are UTF-8: what is not is replaced. They are for messages and comparison.
std::string Member::encode() const {
  return core::json_line(*this);
}

Member Member::decode(std::string_view text) {
  return decoded<Member>(text, "announcement of a rank");
}

bool agree(const Member& a, const Member& b) {
  return std::all_of(settings().begin(), settings().end(),
                     [&](const Setting& setting) { return setting.value(a) == setting.value(b); });
}

std::optional<Error> disagreement(std::string_view group, const std::map<int, Member>& members) {
  for (const Setting& setting : settings()) {
    if (auto error = disagreement_on(setting, group, members)) return error;
  }
  return std::nullopt;
}

std::string encode_roster(const std::vector<Member>& members) {
  return core::json_line(members);
}

std::vector<Member> decode_roster(std::string_view text) {
  return decoded<std::vector<Member>>(text, "roster of a group");
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

std::optional<GroupRecord> find_record(Store& job_scope, std::string_view group) {
  const auto text = job_scope.get(record_key(group));
  if (!text || text->empty()) return std::nullopt;
  return GroupRecord::decode(*text);
}

bool end_record(Store& job_scope, std::string_view group, std::string_view id) {
  const std::string key = record_key(group);
  for (;;) {
    const auto text = job_scope.get(key);
    if (!text || text->empty()) return false;
    if (!id.empty() && GroupRecord::decode(*text).id != id) return false;
    if (job_scope.compare_set(key, *text, "") == text) return true;
  }
}

}  // namespace col::group

#include "group/call/settings.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace col::group {
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

}  // namespace col::group

#include "backend/nccl/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/error.hpp>

namespace col::nccl_backend {
namespace {

constexpr int kMostCtas = 64;  // MAXCHANNELS of NCCL, which lowers greater values

struct Word {
  std::string_view name;
  int value;
  int since;
};
constexpr std::array kPolicies = {Word{"default", 0, 22700}, Word{"efficiency", 1, 22700}, Word{"zero", 2, 22800}};

using Member = int ncclConfig_t::*;
// What `find` finds in the header's configuration: null if that is older.
constexpr Member member(Member (*find)(ncclConfig_t*)) {
  return find(nullptr);
}

struct Row {
  std::string_view name;
  int since;                         // the first version of NCCL that has it
  int least, most;                   // of numbers
  Member member;                     // null: the header does not have it
  std::span<const Word> words = {};  // of values that have names
};
constexpr Row kRows[] = {
    {"cga_cluster_size", 21700, 0, 8, &ncclConfig_t::cgaClusterSize},
    {"channels_per_net_peer", 22800, 1, kMostCtas, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::nChannelsPerNetPeer; }) return &C::nChannelsPerNetPeer;
       return nullptr;
     })},
    {"collnet", 22700, 0, 1, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::collnetEnable; }) return &C::collnetEnable;
       return nullptr;
     })},
    {"cta_policy", 22700, 0, 2, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::CTAPolicy; }) return &C::CTAPolicy;
       return nullptr;
     }),
     kPolicies},
    {"max_ctas", 21700, 1, kMostCtas, &ncclConfig_t::maxCTAs},
    {"min_ctas", 21700, 1, kMostCtas, &ncclConfig_t::minCTAs},
    {"nvlink_centric_sched", 22800, 0, 1, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::nvlinkCentricSched; }) return &C::nvlinkCentricSched;
       return nullptr;
     })},
    {"nvls_ctas", 22700, 1, kMostCtas, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::nvlsCTAs; }) return &C::nvlsCTAs;
       return nullptr;
     })},
    {"split_share", 21800, 0, 1, &ncclConfig_t::splitShare},
    {"traffic_class", 22600, 0, 255, member([]<class C>(C*) -> Member {
       if constexpr (requires { &C::trafficClass; }) return &C::trafficClass;
       return nullptr;
     })},
};

const Row& row_named(std::string_view name) {
  const auto* const found = std::ranges::find(kRows, name, &Row::name);
  if (found != std::end(kRows)) return *found;
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no setting of NCCL '{}' here; it is one of {}", name, fmt::join(names, ", ")));
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 10000, version % 10000 / 100);
}

void require_version(std::string_view what, int since, int version) {
  if (version >= since) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("{} needs NCCL {}, and this is {}; leave it out, or name another with COL_NCCL_LIBRARY", what,
                          version_text(since), version_text(version)));
}

int value_of(const Row& row, std::string_view text, int version) {
  for (const Word& word : row.words) {
    if (word.name != text) continue;
    require_version(fmt::format("{}={}", row.name, text), word.since, version);
    return word.value;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (row.words.empty() && is_number && value >= row.least && value <= row.most) return value;
  std::vector<std::string_view> words;
  for (const Word& word : row.words) words.push_back(word.name);
  throw Error(ErrorCode::invalid_argument,
              words.empty()
                  ? fmt::format("{} is a number from {} to {}, and not '{}'", row.name, row.least, row.most, text)
                  : fmt::format("{} is one of {}, and not '{}'", row.name, fmt::join(words, ", "), text));
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Settings Settings::parse(std::string_view text, int version) {
  Settings settings;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (without_blanks(one).empty()) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("settings of NCCL are written as name=value,name=value; '{}' has no value", one));
    const Row& row = row_named(without_blanks(one.substr(0, equals)));
    require_version(row.name, row.since, version);
    const int value = value_of(row, without_blanks(one.substr(equals + 1)), version);
    if (row.member == nullptr)
      throw Error(ErrorCode::unavailable,
                  fmt::format("this build of col does not know {}: it was made with the nccl.h of {}; build it with {}",
                              row.name, version_text(NCCL_VERSION_CODE), version_text(row.since)));
    if (!settings.values_.emplace(row.name, value).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} is set twice; set it once", row.name));
  }
  return settings;
}

void Settings::add(const Settings& more) {
  for (const auto& [name, value] : more.values_) values_[name] = value;
}

void Settings::require_consistent() const {
  if (!has("min_ctas") || !has("max_ctas")) return;
  const int least = values_.find("min_ctas")->second, most = values_.find("max_ctas")->second;
  if (least <= most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("min_ctas={} is above max_ctas={}; lower the one, or raise the other", least, most));
}

bool Settings::shares_with_children() const {
  const auto found = values_.find("split_share");
  return found != values_.end() && found->second == 1;
}

std::string Settings::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, ","));
}

void Settings::apply(ncclConfig_t& config) const {
  // NCCL takes an upper bound that is not set for a low one.
  if (has("min_ctas")) config.maxCTAs = kMostCtas;
  for (const auto& [name, value] : values_) config.*row_named(name).member = value;
}

}  // namespace col::nccl_backend

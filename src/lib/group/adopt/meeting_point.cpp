#include "group/adopt/meeting_point.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "net/address.hpp"
#include "net/endpoint.hpp"

namespace col::group::adopt {
namespace {

constexpr int kFirstPort = 20000;
constexpr int kPorts = 9000;
constexpr std::string_view kEndpoint = "COL_RDZV_ENDPOINT";
constexpr std::string_view kAdvice =
    "set COL_RDZV_ENDPOINT=host:port on all ranks, to the host of rank 0 and a free port there, or COL_STORE to a "
    "store that all of them can reach, or start the program with colrun";

[[noreturn]] void refuse(const LaunchedRank& own, std::string_view why) {
  throw Error(ErrorCode::unavailable,
              fmt::format("the ranks are on several hosts ({}), and {}; {}", own.several_hosts, why, kAdvice));
}

MeetingPoint from_endpoint(const std::string& text) {
  if (auto endpoint = net::parse_endpoint(text))
    return {.host = std::move(endpoint->host), .port = endpoint->port, .source = std::string(kEndpoint), .job = text};
  if (auto host_alone = net::parse_endpoint(text + ":1"))
    return {.host = std::move(host_alone->host), .port = 0, .source = std::string(kEndpoint), .job = text};
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}='{}' is no host:port (an address with colons in brackets, a port from 1 to 65535); "
                          "correct it on all ranks",
                          kEndpoint, text));
}

// `host` came from `source`; it must be one that can be connected to.
MeetingPoint at_host(const std::string& host, std::string_view source) {
  const bool has_colons = host.find(':') != std::string::npos;
  if (!net::parse_endpoint(fmt::format(fmt::runtime(has_colons ? "[{}]:1" : "{}:1"), host)))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} says that rank 0 is on '{}', which is no host; {}", source, host, kAdvice));
  return {.host = host, .port = 0, .source = std::string(source), .job = host};
}

MeetingPoint from_slurm_nodes(const LaunchedRank& own, const Lookup& lookup) {
  constexpr std::string_view kNodes = "SLURM_STEP_NODELIST";
  const auto list = lookup(kNodes);
  if (!list) refuse(own, "SLURM_STEP_NODELIST is not set");
  const auto host = first_of_node_list(*list);
  if (!host)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}='{}' is no list of hosts; {}", kNodes, *list, kAdvice));
  MeetingPoint point = at_host(*host, kNodes);
  const auto name = lookup("SLURMD_NODENAME");
  const std::vector<int> neighbours = ranks_on_node(lookup("SLURM_GTIDS").value_or(""));
  if (name && !neighbours.empty()) {
    point.serves = *name == *host && own.rank == neighbours.front();
    point.server = "rank 0 or the lowest rank there";
  } else if (own.rank == 0 && !own.node.empty() && own.node != "0") {
    refuse(own, fmt::format("rank 0 is not on the first of them (SLURM_NODEID={}), where the others look", own.node));
  }
  return point;
}

MeetingPoint from_pods(const LaunchedRank& own, const std::string& name) {
  const std::string first = first_pod(name, own.rank);
  if (first.empty())
    refuse(own, fmt::format("the name of this one, '{}', is not that of pod {} of an Indexed Job", name, own.rank));
  MeetingPoint point = at_host(first, "the name of this pod");
  // Should one pod know its domain and another not, they are of the same job.
  point.job = first.substr(0, first.find('.'));
  return point;
}

constexpr std::string_view kDigits = "0123456789";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

// For "01-03,7", the text between the brackets: "01", with its zeros. Empty if it is not a list of numbers.
std::string_view first_number(std::string_view ranges) {
  const std::string_view first = ranges.substr(0, ranges.find_first_of("-,"));
  for (bool more = true; more;) {
    const auto comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const auto dash = range.find('-');
    if (!is_number(range.substr(0, dash))) return {};
    if (dash != std::string_view::npos && !is_number(range.substr(dash + 1))) return {};
    more = comma != std::string_view::npos;
    if (more) ranges.remove_prefix(comma + 1);
  }
  return first;
}

}  // namespace

MeetingPoint find_meeting_point(const LaunchedRank& own, const Lookup& lookup,
                                const std::function<std::string()>& own_name,
                                const std::function<std::string()>& first_host) {
  if (const auto endpoint = lookup(kEndpoint)) return from_endpoint(*endpoint);
  if (own.launcher == "slurm") return from_slurm_nodes(own, lookup);
  if (own.launcher == "kubernetes") return from_pods(own, own_name());
  if (own.launcher == "torchrun") {
    if (const auto address = lookup("MASTER_ADDR")) return at_host(*address, "MASTER_ADDR");
  }
  if (own.pmi_fd) return at_host(first_host(), "what rank 0 told the launcher");
  refuse(own, "nothing says on which of them rank 0 is");
}

std::optional<std::string> first_of_node_list(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      const auto plain = std::min(list.find_first_of("[,"), list.size());
      host += list.substr(0, plain);
      list.remove_prefix(plain);
      continue;
    }
    const auto close = list.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view number = first_number(list.substr(1, close - 1));
    if (number.empty()) return std::nullopt;
    host += number;
    list.remove_prefix(close + 1);
  }
  if (host.empty() || host.find_first_of("] \t\n") != std::string::npos) return std::nullopt;
  return host;
}

std::string full_host_name() {
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return {};
  return net::full_host_name(buffer.data());
}

std::string first_pod(std::string_view name, int index) {
  const auto dot = std::min(name.find('.'), name.size());
  const std::string end = fmt::format("-{}", index);
  const std::string_view pod = name.substr(0, dot);
  if (pod.size() <= end.size() || !pod.ends_with(end)) return {};
  return fmt::format("{}-0{}", pod.substr(0, pod.size() - end.size()), name.substr(dot));
}

int job_port(std::string_view job) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, as anybody can compute it to see which port it is
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return kFirstPort + static_cast<int>(hash % kPorts);
}

}  // namespace col::group::adopt

#include "launch/pmi/pmi_server.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "net/stream.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;

constexpr std::size_t kMaxName = 256, kMaxKey = 64, kMaxValue = 1024;  // as MPICH's own launcher grants
constexpr std::size_t kMaxLine = 4096;
// So that a rank cannot fill our memory.
constexpr std::size_t kMaxEntriesPerRank = 1024;
constexpr int kMostReads = 16;  // at once: other ranks, and signals, have their turn
constexpr std::string_view kMapping = "PMI_process_mapping";

// The value of `key` in "key=value key=value"; empty if it is not there. A value ends at the next space, but the last
// one of a line, which may be any text, goes on to its end.
std::string_view value_of(std::string_view line, std::string_view key, bool to_the_end = false) {
  while (!line.empty()) {
    const std::string_view pair = line.substr(0, line.find(' '));
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return (to_the_end ? line : pair).substr(key.size() + 1);
    line.remove_prefix(std::min(pair.size() + 1, line.size()));
  }
  return {};
}

// Where the ranks are, as MPICH reads it: blocks of (first node, how many nodes, ranks on each).
std::string mapping_of(const std::vector<int>& ranks_of_nodes) {
  std::string text = "(vector";
  for (std::size_t first = 0; first < ranks_of_nodes.size();) {
    std::size_t end = first;
    while (end < ranks_of_nodes.size() && ranks_of_nodes[end] == ranks_of_nodes[first]) ++end;
    text += fmt::format(",({},{},{})", first, end - first, ranks_of_nodes[first]);
    first = end;
  }
  return text + ")";
}

}  // namespace

PmiServer::PmiServer(const Assignment& assignment, Events& events, std::function<void(int local_rank)> heard)
    : assignment_(assignment),
      events_(events,
              [this, heard = std::move(heard)](std::size_t index) {
                const auto local_rank = static_cast<int>(index);
                on_readable(local_rank);
                heard(local_rank);
              }),
      ranks_(static_cast<std::size_t>(assignment.local_ranks)) {
  known_.emplace(kMapping, mapping_of(assignment.ranks_of_nodes.empty() ? std::vector{assignment.local_ranks}
                                                                        : assignment.ranks_of_nodes));
}

UniqueFd PmiServer::add_rank(int local_rank) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw LaunchError(tools::exit_code::kLauncher, "cannot create a socket: {}; use fewer ranks", strerror(errno));
  UniqueFd own(ends[0]), theirs(ends[1]);
  ::fcntl(own.get(), F_SETFL, O_NONBLOCK);
  events_.add_readable(own.get(), static_cast<std::size_t>(local_rank));
  ranks_[static_cast<std::size_t>(local_rank)] = {.socket = std::move(own), .unread = {}};
  return theirs;
}

void PmiServer::on_readable(int local_rank) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  std::array<char, kMaxLine> bytes;
  for (int reads = 0; rank.socket && reads < kMostReads; ++reads) {
    const ssize_t length = ::read(rank.socket.get(), bytes.data(), bytes.size());
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length <= 0) return rank.socket.reset();
    rank.unread.append(bytes.data(), static_cast<std::size_t>(length));
    for (std::size_t end; rank.socket && (end = rank.unread.find('\n')) != std::string::npos;) {
      const std::string line = rank.unread.substr(0, end);
      rank.unread.erase(0, end + 1);
      on_line(rank, line);
    }
    // It speaks something else.
    if (rank.unread.size() > kMaxLine) rank.socket.reset();
  }
}

void PmiServer::on_line(Rank& rank, std::string_view line) {
  // The one command of several lines starts more processes.
  if (line == "mcmd=spawn") rank.skips = true;
  if (rank.skips) {
    if (line != "endcmd") return;
    rank.skips = false;
    return say(rank, "cmd=spawn_result rc=-1 msg=colrun_starts_no_more_processes");
  }
  if (const std::string text = answer(rank, line); !text.empty()) say(rank, text);
}

// Empty: there is none, or not yet.
std::string PmiServer::answer(Rank& rank, std::string_view line) {
  const std::string_view command = value_of(line, "cmd");
  if (command == "init") {
    const bool is_known = value_of(line, "pmi_version") == "1";
    return fmt::format("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={}", is_known ? 0 : -1);
  }
  if (command == "get_maxes")
    return fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={} rc=0", kMaxName, kMaxKey, kMaxValue);
  if (command == "get_appnum") return "cmd=appnum appnum=0 rc=0";
  if (command == "get_universe_size") return fmt::format("cmd=universe_size size={} rc=0", assignment_.world_size);
  if (command == "get_my_kvsname") return fmt::format("cmd=my_kvsname kvsname={} rc=0", assignment_.job_id);
  if (command == "barrier_in") {
    rank.waits = true;
    return {};
  }
  if (command == "put") {
    const std::string_view key = value_of(line, "key"), value = value_of(line, "value", true);
    const std::size_t most = kMaxEntriesPerRank * ranks_.size();
    const std::size_t most_known = kMaxEntriesPerRank * static_cast<std::size_t>(assignment_.world_size);
    if (key.empty() || key.size() > kMaxKey || value.size() > kMaxValue || put_.size() >= most ||
        known_.size() > most_known)
      return "cmd=put_result rc=-1 msg=too_long_or_too_many";
    put_.insert_or_assign(std::string(key), std::string(value));
    return "cmd=put_result rc=0 msg=success";
  }
  if (command == "get") return answer_get(value_of(line, "key"));
  if (command == "finalize") return "cmd=finalize_ack rc=0";
  if (command == "publish_name") return "cmd=publish_result rc=-1 info=no_names_here";
  if (command == "unpublish_name") return "cmd=unpublish_result rc=-1 info=no_names_here";
  if (command == "lookup_name") return "cmd=lookup_result rc=-1 info=no_names_here";
  if (command == "abort") {
    int code = 0;
    const std::string_view text = value_of(line, "exitcode");
    std::from_chars(text.data(), text.data() + text.size(), code);
    rank.asks_to_end_with = code;
    return {};
  }
  rank.socket.reset();  // it speaks another protocol
  return {};
}

std::string PmiServer::answer_get(std::string_view key) const {
  // A rank may ask for what a rank of its node has just put.
  for (const Entries* entries : {&put_, &known_}) {
    if (const auto found = entries->find(key); found != entries->end())
      return "cmd=get_result rc=0 msg=success value=" + found->second;
  }
  return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
}

// The rank awaits the answer, so there is room for it in the socket. Who has asked a thousand times without a look at
// the answers is no MPI program.
void PmiServer::say(Rank& rank, const std::string& line) {
  if (!rank.socket) return;
  const std::string text = line + '\n';
  if (net::send(rank.socket.get(), text).bytes != text.size()) rank.socket.reset();
}

std::optional<int> PmiServer::take_abort(int local_rank) {
  return std::exchange(ranks_[static_cast<std::size_t>(local_rank)].asks_to_end_with, std::nullopt);
}

std::optional<PmiServer::Entries> PmiServer::take_barrier() {
  if (!std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.waits; })) return std::nullopt;
  for (Rank& rank : ranks_) rank.waits = false;
  return std::exchange(put_, {});
}

void PmiServer::end_barrier(const Entries& all) {
  for (const auto& [key, value] : all) known_.insert_or_assign(key, value);
  for (Rank& rank : ranks_) say(rank, "cmd=barrier_out rc=0");
}

}  // namespace col::launch

#include "launch/job/assignment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace col::launch {
namespace {

constexpr std::string_view kLetters = "rRlnwhjgs%";
constexpr std::string_view kKnown =
    "%r (rank), %R (rank with zeros), %l (local rank), %n (node rank), %w (world size), %h (host), %j (job id), "
    "%g (restart count), %s (stream) and %% (a percent sign)";

std::string meaning(char letter, const RankNames& names, std::string_view stream) {
  switch (letter) {
    case 'r':
      return fmt::to_string(names.rank);
    case 'R':
      return fmt::format("{:0{}}", names.rank, fmt::to_string(std::max(names.world_size - 1, 0)).size());
    case 'l':
      return fmt::to_string(names.local_rank);
    case 'n':
      return fmt::to_string(names.node_rank);
    case 'w':
      return fmt::to_string(names.world_size);
    case 'h':
      return names.host;
    case 'j':
      return names.job_id;
    case 'g':
      return fmt::to_string(names.restart);
    case 's':
      return std::string(stream);
    default:
      return "%";
  }
}

}  // namespace

std::optional<std::string> why_no_pattern(std::string_view pattern) {
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%', at + 2)) {
    if (at + 1 == pattern.size()) return "it ends with a single %; write %% for a percent sign";
    if (kLetters.find(pattern[at + 1]) != std::string_view::npos) continue;
    return fmt::format("%{} is not known; there are {}", pattern[at + 1], kKnown);
  }
  return std::nullopt;
}

std::string expand_pattern(std::string_view pattern, const RankNames& names, std::string_view stream) {
  std::string text;
  std::size_t done = 0;
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%', done)) {
    text.append(pattern.substr(done, at - done));
    text.append(meaning(pattern[at + 1], names, stream));
    done = at + 2;
  }
  return text.append(pattern.substr(done));
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace col::launch

#include "group/diagnosis/world_ranks.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "core/joined.hpp"

namespace col::group {
namespace {

constexpr std::string_view kRank = "rank";
// After this, a message speaks of the ranks of another group, which has named them already.
constexpr std::string_view kElsewhere = " after an error of group '";

int world_rank_of(int rank, std::span<const PeerInfo> peers) {
  return rank >= 0 && static_cast<std::size_t>(rank) < peers.size() ? peers[static_cast<std::size_t>(rank)].global_rank
                                                                    : -1;
}

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/';
}

// The end of "rank 3" or "ranks 3, 4" that begins at `from`, whose numbers are appended to `ranks`; npos when none
// does.
std::size_t end_of_ranks(std::string_view text, std::size_t from, std::vector<int>& ranks) {
  if (from > 0 && is_letter(text[from - 1])) return std::string_view::npos;
  if (text.substr(0, from).ends_with("world ")) return std::string_view::npos;
  std::size_t at = from + kRank.size();
  const bool several = text.substr(at).starts_with("s ");
  at += several ? 2 : 1;
  if (at > text.size() || text[at - 1] != ' ') return std::string_view::npos;
  std::size_t end = std::string_view::npos;
  for (;;) {
    int number = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return end;
    ranks.push_back(number);
    end = static_cast<std::size_t>(stop - text.data());
    if (!several || !text.substr(end).starts_with(", ")) return end;
    at = end + 2;
  }
}

// Whether the text after a number already says that it is not a rank of the group, or already has the other number.
bool says_more(std::string_view rest) {
  return rest.starts_with(" of the job") || rest.starts_with(" (world rank");
}

}  // namespace

std::string name_world_ranks(std::string_view message, std::span<const PeerInfo> peers) {
  std::string named;
  std::set<std::vector<int>> told;
  std::size_t done = 0;
  const std::size_t own_end = message.find(kElsewhere);
  for (std::size_t at = message.find(kRank); at < own_end; at = message.find(kRank, at + 1)) {
    std::vector<int> ranks, world_ranks;
    const std::size_t end = end_of_ranks(message, at, ranks);
    if (end == std::string_view::npos || says_more(message.substr(end))) continue;
    for (const int rank : ranks) world_ranks.push_back(world_rank_of(rank, peers));
    const bool unknown = std::find(world_ranks.begin(), world_ranks.end(), -1) != world_ranks.end();
    if (unknown || ranks == world_ranks || !told.insert(ranks).second) continue;
    named += message.substr(done, end - done);
    named += fmt::format(" (world {} {})", ranks.size() == 1 ? "rank" : "ranks", core::joined(world_ranks, ", "));
    done = end;
  }
  return named.append(message.substr(done));
}

Error with_world_rank(const Error& error, std::span<const PeerInfo> peers) {
  const int world_rank = error.world_rank() >= 0 ? error.world_rank() : world_rank_of(error.rank(), peers);
  return Error(error.code(), name_world_ranks(error.message(), peers), error.group(), error.rank(), world_rank,
               error.is_loss());
}

}  // namespace col::group

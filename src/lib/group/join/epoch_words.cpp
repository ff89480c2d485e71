#include "group/join/epoch_words.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "core/joined.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/most_common.hpp"

namespace col::group {
namespace {

std::string wishes(const Generation& last, const Presence& word) {
  std::vector<int> numbers;
  for (const Incarnation one : word.excluded) numbers.push_back(last.number_of(one));
  std::sort(numbers.begin(), numbers.end());
  return fmt::format("size {}, min {}, excluded [{}]", word.size, word.min, core::joined(numbers, ", "));
}

int only_one(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? ranks.front() : -1;
}

}  // namespace

Error fewer_than_min(std::string_view group, int survivors, int newcomers, int min) {
  return Error(
      ErrorCode::peer_lost,
      fmt::format("renew: {} rank{} left and {} more wait{} to join, which is fewer than min = {}; start spares "
                  "(colrun --spares, col::join), allow a longer wait or a smaller min, or go back to a checkpoint",
                  survivors, survivors == 1 ? " is" : "s are", newcomers, newcomers == 1 ? "s" : "", min),
      group);
}

Error more_than_most(std::string_view group, int size, int most) {
  return Error(
      ErrorCode::invalid_argument,
      fmt::format("renew: size = {} is more than the {} ranks for which this job has room; ask for {} at most, "
                  "or start the job with room for more (colrun --elastic MIN:MAX)",
                  size, most, most),
      group);
}

Error nobody_stays(std::string_view group) {
  return Error(ErrorCode::invalid_argument,
               "renew: `excluded` lists all ranks that live; leave one of them out of the list, or destroy the group "
               "to end it",
               group);
}

Error unequal_wishes(std::string_view group, const Generation& last, const std::vector<const Presence*>& words) {
  std::vector<std::string> opinions, parts;
  std::vector<int> ranks;
  for (const Presence* word : words) {
    ranks.push_back(last.number_of(word->incarnation));
    opinions.push_back(wishes(last, *word));
  }
  const std::string& common = opinions[most_common(opinions)];
  const bool is_majority = 2 * std::ranges::count(opinions, common) > static_cast<std::ptrdiff_t>(opinions.size());
  int odd = -1;
  for (std::size_t i = 0; i < opinions.size(); ++i) {
    if (odd < 0 && is_majority && opinions[i] != common) odd = ranks[i];
    parts.push_back(fmt::format("rank {} says {}", ranks[i], opinions[i]));
  }
  return Error(ErrorCode::mismatch,
               fmt::format("renew: {}{}; all ranks must call it with the same size, min and excluded",
                           odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "", core::joined(parts, "; ")),
               group, odd);
}

Error register_gone(std::string_view group, std::string_view why) {
  return Error(
      ErrorCode::io,
      fmt::format("renew: the register that decides on the next epoch cannot be reached ({}), and without it no "
                  "epoch begins; end this process, and see to the host or the process that serves the job's "
                  "store before you start again",
                  why),
      group);
}

Error left_out(std::string_view group, const EpochRecord& known, Incarnation self) {
  std::string_view why = "of an epoch before it";
  for (const LostSeat& seat : known.lost) {
    if (seat.incarnation != self) continue;
    why = seat.is_excluded ? "because the other ranks have called renew() without it"
                           : "because others have taken its process for dead";
  }
  return Error(ErrorCode::aborted,
               fmt::format("left out in epoch {} {}; this process may join again by col::join(\"{}\"), or should end",
                           known.epoch, why, group),
               group);
}

Error late_for_renewal(std::string_view group, const std::vector<int>& ranks) {
  return Error(
      ErrorCode::timeout,
      fmt::format("renew: {} live{} and did not call it in time; see what {} (coljob why), allow more time, or "
                  "leave {} out by `excluded`",
                  ranks_text(ranks), ranks.size() == 1 ? "s" : "", ranks.size() == 1 ? "it does" : "they do",
                  ranks.size() == 1 ? "it" : "them"),
      group, only_one(ranks));
}

Error late_to_connect(std::string_view group, std::uint64_t epoch, const std::vector<int>& ranks) {
  if (ranks.empty())
    return Error(
        ErrorCode::timeout,
        fmt::format("renew: a process that joins in epoch {} did not connect in time; see what it does, or allow "
                    "more time",
                    epoch),
        group);
  return Error(
      ErrorCode::timeout,
      fmt::format("renew: {} did not connect for epoch {} in time; see what {} (coljob why), allow more time, or leave "
                  "{} out by `excluded`",
                  ranks_text(ranks), epoch, ranks.size() == 1 ? "it does" : "they do",
                  ranks.size() == 1 ? "it" : "them"),
      group, only_one(ranks));
}

Error register_slow(std::string_view group) {
  return Error(ErrorCode::timeout,
               "renew: the register that decides on the next epoch did not answer in time; see to the job's store, or "
               "allow more time",
               group);
}

Error no_such_group(std::string_view group) {
  return Error(
      ErrorCode::timeout,
      fmt::format("join: nobody has made a group '{}' in this job; check the name, or start the ranks that make "
                  "it first",
                  group),
      group);
}

Error not_taken(std::string_view group, int size, int most) {
  const bool is_full = most > 0 && size >= most;
  return Error(
      ErrorCode::timeout,
      is_full ? fmt::format("join: the group has all of the {} ranks for which this job has room; wait for longer, "
                            "or start the job with room for more (colrun --elastic MIN:MAX)",
                            most)
              : fmt::format("join: the group has {} ranks, which did not call renew() with room for this process in "
                            "time; wait for longer, or let them ask for more (renew with a larger size)",
                            size),
      group);
}

Error nobody_lives(std::string_view group, std::uint64_t epoch) {
  return Error(
      ErrorCode::peer_lost,
      fmt::format("join: no rank of epoch {} lives any more, so nobody can take this process in; start the job "
                  "again, from its checkpoint",
                  epoch),
      group);
}

}  // namespace col::group

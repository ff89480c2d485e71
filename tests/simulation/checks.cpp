#include "simulation/checks.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/duration.hpp"

namespace col::test {
namespace {

// How late after its deadline a call may end: a slice, and what it asks the store to find the culprit.
constexpr Duration kSlack = std::chrono::milliseconds(1500);

// The errors that a rank may hear if one comes to the meeting with other words, and nothing else is wrong.
bool fits(ErrorCode code, Mistake::Kind kind) {
  switch (kind) {
    case Mistake::Kind::absent:
      return code == ErrorCode::timeout;
    case Mistake::Kind::twice:
      return code == ErrorCode::mismatch || code == ErrorCode::already_initialized || code == ErrorCode::timeout;
    case Mistake::Kind::unknown:
      return code == ErrorCode::unavailable;
    default:
      return code == ErrorCode::mismatch || code == ErrorCode::timeout;
  }
}

// In the job; -1: the error names nobody.
int culprit_of(const Error& error, const std::vector<Group>& groups) {
  if (error.world_rank() >= 0 || error.rank() < 0) return error.world_rank();
  for (const Group& group : groups) {
    if (group && group.name() == error.group()) return group.world_rank(error.rank());
  }
  return error.rank();  // while the world is made
}

}  // namespace

void Checks::problem(std::string text) {
  simulator_.note("problem", text);
  problems_.push_back(std::move(text));
}

// An error may be another rank's, which has waited for longer.
bool Checks::was_store_mute(Time begun) const {
  return truth_.was_store_mute_since(begun - timeout_);
}

void Checks::time(int rank, const std::string& what, Time begun, Duration budget) {
  const Duration taken = simulator_.now() - begun - truth_.stopped_since(rank, begun);
  if (taken <= budget + kSlack) return;
  problem(fmt::format("rank {}: {} took {}, with {} for it", rank, what, core::format_duration(taken),
                      core::format_duration(budget)));
}

void Checks::error(int rank, const std::string& what, const Error& error, const std::vector<Group>& groups,
                   Time begun) {
  had_errors_ = true;
  const std::string who = fmt::format("rank {}: {}", rank, what);
  if (!truth_.any() && !mistake_) return problem(fmt::format("{} without a fault: {}", who, error.what()));
  const bool may_be = error.code() == ErrorCode::timeout || error.code() == ErrorCode::peer_lost ||
                      error.code() == ErrorCode::aborted || error.code() == ErrorCode::io;
  // An interrupt may end a wait and break nothing: then the rank leaves without the calls that the others make.
  const bool may_differ =
      error.code() == ErrorCode::mismatch
          ? mistake_ || truth_.was_any_interrupted()
          : mistake_ && (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::already_initialized);
  if (mistake_ && !truth_.any()) {
    if (!fits(error.code(), mistake_->kind)) problem(fmt::format("{}: unexpected {}", who, error.what()));
    if (mistake_->kind == Mistake::Kind::absent && culprit_of(error, groups) != mistake_->rank)
      problem(fmt::format("{}: who is absent is not named: {}", who, error.what()));
  } else if (!may_be && !may_differ)
    problem(fmt::format("{}: unexpected {}", who, error.what()));
  // A rank that waits for a store that does not answer holds others up. One that has stood still itself past its
  // deadline finds the others gone. And where a link is silent, the ranks at its ends wait for each other: of a circle,
  // the first is named. One that comes late finds that others have given up.
  const bool is_excused = error.code() == ErrorCode::timeout && (truth_.is_any_silent() || truth_.has_been_late(rank));
  if (was_store_mute(begun) || truth_.stopped_since(rank, begun) > Duration::zero() || is_excused) return;
  // To one that is in the wrong, the others are.
  if (mistake_ && mistake_->rank == rank) return;
  const int culprit = culprit_of(error, groups);
  const bool is_mistaken = mistake_ && mistake_->is_about(culprit);
  if (culprit >= 0 && !is_mistaken && !truth_.may_be_blamed(culprit))
    problem(fmt::format("{} blames rank {}, which is innocent: {}", who, culprit, error.what()));
}

void Checks::names_somebody(int rank, const std::string& what, const Error& error, Time begun) {
  if (!truth_.are_all_kills() || mistake_ || error.rank() >= 0 || error.world_rank() >= 0 || was_store_mute(begun))
    return;
  // If several ranks are missing alike, the text names all, and the error none.
  if (error.code() == ErrorCode::timeout && truth_.kills() > 1) return;
  problem(fmt::format("rank {}: {} names nobody: {}", rank, what, error.what()));
}

void Checks::data(int rank, const std::string& what, const std::string& wrong) {
  if (!wrong.empty()) problem(fmt::format("rank {}: {}: {}", rank, what, wrong));
}

}  // namespace col::test

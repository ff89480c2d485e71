// The part of the diagnosis that looks for processes that are gone, by the records of this node's ranks.
#include <algorithm>

#include <fmt/format.h>

#include "core/job/record_words.hpp"
#include "group/diagnosis/diagnosis.hpp"

namespace col::group {
namespace {

bool is_under_way(RankActivity::State state) {
  return state == RankActivity::State::running || state == RankActivity::State::waiting;
}

}  // namespace

std::optional<Error> Diagnosis::lost_peer(bool needed_alone) const {
  const auto& control = surroundings_.control;
  for (int i = 0; control && i < control->local_ranks(); ++i) {
    const RankRecord& record = control->record(i);
    if (const PeerInfo* const replaced = replaced_member(record)) return taken_place(*replaced, record.holder());
    if (!record.lost()) continue;
    const RankActivity gone = record.read();
    const int member = surroundings_.rank_of(gone.rank);
    if (member < 0 || (needed_alone && !is_needed(record, gone))) continue;
    const RankActivity first = first_to_end(gone);
    const bool is_member = surroundings_.rank_of(first.rank) >= 0;  // only a member can be left out of a smaller group
    const RankActivity& named = is_member ? first : gone;
    const int rank = surroundings_.rank_of(named.rank);
    return Error(
        ErrorCode::peer_lost,
        fmt::format("rank {} (pid {}) has ended without col::finalize(){}{}; its own output and exit code say why",
                    rank, named.pid, is_under_way(named.state) ? fmt::format(", inside {}", named.op) : "",
                    is_member ? "" : fmt::format(", as it had lost rank {} of the job", first.rank)),
        surroundings_.group, rank, named.rank);
  }
  return std::nullopt;
}

// The member whose place another process has taken: it has ended, and its record is not there to say so. Null: none.
const PeerInfo* Diagnosis::replaced_member(const RankRecord& record) const {
  const int member = record.restarts() > 0 ? surroundings_.rank_of(record.rank()) : -1;
  if (member < 0) return nullptr;
  const PeerInfo& peer = surroundings_.peers[static_cast<std::size_t>(member)];
  const std::int64_t holder = record.holder();
  return peer.pid > 0 && holder > 0 && peer.pid != holder ? &peer : nullptr;
}

Error Diagnosis::taken_place(const PeerInfo& member, std::int64_t holder) const {
  return Error(
      ErrorCode::peer_lost,
      fmt::format("rank {} (pid {}) has ended without col::finalize(), and process {} has taken its place; its "
                  "own output and exit code say why",
                  member.rank, member.pid, holder),
      surroundings_.group, member.rank, member.global_rank);
}

// A rank that ended because it had lost another one has said which. In a circle, `gone` is as good as any.
RankActivity Diagnosis::first_to_end(const RankActivity& gone) const {
  RankActivity first = gone;
  for (int links = 0; first.held_up_by >= 0; ++links) {
    const RankRecord* const record = surroundings_.record_of(first.held_up_by);
    if (record == nullptr || !record->lost()) return first;
    if (links == surroundings_.control->local_ranks()) return gone;
    first = record->read();
  }
  return first;
}

// This call can still be waiting for a process that is gone, unless that one ended after it had done its part.
bool Diagnosis::is_needed(const RankRecord& record, const RankActivity& gone) const {
  if (is_under_way(gone.state) || gone.group.empty()) return true;
  const int rank = surroundings_.rank_of(gone.rank);
  return std::any_of(operations_.begin(), operations_.end(), [&](const Operation& operation) {
    const auto& peers = operation.counterparts;
    if (std::find(peers.begin(), peers.end(), rank) == peers.end()) return false;
    return !operation.collective || !has_done_its_part(record, gone, operation);
  });
}

// The record shows the last call alone, and the flight recorder earlier ones, of other groups too.
bool Diagnosis::has_done_its_part(const RankRecord& record, const RankActivity& gone,
                                  const Operation& operation) const {
  // A longer name is cut in the record, and may be another one's.
  if (gone.group == surroundings_.group && gone.sequence >= operation.sequence) return true;
  const std::vector<TimedCall> calls = record.times_since(0).calls;
  return std::any_of(calls.begin(), calls.end(), [&](const TimedCall& call) {
    return call.token == surroundings_.token && call.ended && !core::is_message(call.op) &&
           call.sequence == operation.sequence;
  });
}

}  // namespace col::group

#!/bin/bash
# plant_bugs.sh LIBRARY RESULTS: writes sources of the library (src/lib) anew into the folder RESULTS, with bugs that
# planted(NUMBER) switches on. Simulated jobs must find each of them: otherwise their silence says nothing.
set -euo pipefail
. "$(dirname "$0")/../support/plant.sh"
results=$(cd "$2" && pwd)
cd "$1"
total=21

# change FILE: the file can ask planted().
change() {
  take "$1"
  text=$'namespace col::test {\nbool planted(int bug);\n}\n'$text
}

change core/job/wait_context.cpp
# 1: a deadline begins anew with each look. 2: nothing else moves on meanwhile. 3: the deadline is not looked at. 4: nobody
# is asked who is missing.
plant $'  slow_interval_ = std::min(2 * slow_interval_, kLongestSlowInterval);\n' \
  $'  slow_interval_ = std::min(2 * slow_interval_, kLongestSlowInterval);\n  if (FAULT) deadline_ = Deadline::after(deadline_.budget());\n'
plant 'if (core::Background::any()) (*core' 'if (core::Background::any() && !FAULT) (*core'
plant 'if (now < deadline_.at()) return;' 'if (now < deadline_.at() || FAULT) return;'
plant 'if (observer_ != nullptr) observer_->on_timeout' 'if (observer_ != nullptr && !FAULT) observer_->on_timeout'
give "$results/bugs_wait_context.cpp"

change group/diagnosis/diagnosis.cpp
# 5: the culprit of a timeout is the reporter.
plant 'surroundings_.group, culprit.rank, culprit.world_rank);' \
  'surroundings_.group, FAULT ? surroundings_.rank : culprit.rank, culprit.world_rank);'
give "$results/bugs_diagnosis.cpp"

change group/diagnosis/deaths.cpp
# 6: who waits is lost.
plant 'if (!record.lost()) continue;' \
  'if (!record.lost() && !(FAULT && record.read().state == RankActivity::State::waiting)) continue;'
give "$results/bugs_deaths.cpp"

change group/diagnosis/board.cpp
# 7: who leaves because of an error does not say so. 8: who left because of an error has made fewer calls. 9: the same,
# for who looks while it waits. 10: with COL_CHECK=strict, a timeout is the store's.
plant 'if (why) own.why = encode_error(*why);' 'if (why && !FAULT) own.why = encode_error(*why);'
plant '!calls.why.empty();' '!calls.why.empty() && !FAULT;'
plant 'if (calls->end() > sequence) continue;' 'if (calls->end() > sequence || FAULT) continue;'
plant '!wait.deadline().expired()) throw;' '!wait.deadline().expired() || FAULT) throw;'
give "$results/bugs_board.cpp"

change group/context.cpp
# 11: a group that could not be made is no reason to leave. 12: nor is any error where a group is destroyed by its name.
plant '    note_failure(error);' '    if (!FAULT) note_failure(error);'
plant 'if (const auto error = state->destroy(reason_to_leave(*state)))' \
  'if (const auto error = state->destroy(FAULT ? std::nullopt : reason_to_leave(*state)))'
give "$results/bugs_context.cpp"

change group/flight/core.cpp
# 13: the notice of what broke the group is lost.
plant 'if (surroundings().scope && !surroundings().store_is_mute())' \
  'if (surroundings().scope && !surroundings().store_is_mute() && !FAULT)'
give "$results/bugs_core.cpp"

change group/join/family.cpp
# 14: shrink keeps those that are left out.
plant 'if (!std::binary_search(leaving.begin(), leaving.end(), member)) ranks.push_back(member);' \
  'if (!std::binary_search(leaving.begin(), leaving.end(), member) || FAULT) ranks.push_back(member);'
give "$results/bugs_family.cpp"

change group/join/meeting_lead.cpp
# 15: the last rank is not answered.
plant '      told.neighbours.emplace_back(rank, member.nonce);' \
  '      if (!FAULT || rank + 1 < self_.world_size) told.neighbours.emplace_back(rank, member.nonce);'
give "$results/bugs_meeting_lead.cpp"
# From here the one above is called: within one batch, the compiler would join the originals of both.
change group/join/meeting.cpp
give "$results/bugs_meeting.cpp"

change exec/executor.cpp
# 16: a step does not wait for what it reads. 17: receives of the next round land in what this round still uses. 18: they
# are posted twice.
plant 'if (message.receives) return touches(step, message.slice);' \
  'if (message.receives) return !FAULT && touches(step, message.slice);'
plant 'if (touches(current, step.to)) return;' 'if (touches(current, step.to) && !FAULT) return;'
plant 'if (receives++ < early_steps_) continue;' 'if (receives++ < early_steps_ && !FAULT) continue;'
give "$results/bugs_executor.cpp"

change store/tcp/engine.cpp
# 19: a wait does not look first. 20: one of several who wait is forgotten.
plant 'if (const SharedBytes value = database_.find(request.key)) return send_value' \
  'if (const SharedBytes value = database_.find(request.key); value && !FAULT) return send_value'
plant '  waits_count_ -= waiters.size();
  for (const auto& [session, id] : waiters) {
    session->waits_.erase(id);' '  waits_count_ -= waiters.size();
  for (const auto& [session, id] : waiters) {
    session->waits_.erase(id);
    if (FAULT && waiters.size() > 1 && id == waiters.back().id && session == waiters.back().session) continue;'
give "$results/bugs_engine.cpp"

change group/flight/access.cpp
# 21: who comes looks before it takes the lock whether a turn is free.
plant $'  std::unique_lock lock(mutex_);\n  if (entered_ > 0 &&' $'  const bool is_free = queue_.empty();
  std::unique_lock lock(mutex_);
  if (FAULT && is_free) {
    queue_.push_front(self);
    entered_ = 1;
    return true;
  }
  if (entered_ > 0 &&'
give "$results/bugs_access.cpp"

[ "$number" -eq "$total" ] || { echo "$number bugs instead of $total" >&2; exit 1; }

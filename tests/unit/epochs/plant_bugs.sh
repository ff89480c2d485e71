#!/bin/bash
# plant_bugs.sh LIBRARY RESULTS: writes the sources of the change of epochs (src/lib) anew into the folder RESULTS, with
# bugs that planted(NUMBER) switches on. The search must find each of them: otherwise its silence says nothing.
set -euo pipefail
. "$(dirname "$0")/../../support/plant.sh"
results=$(cd "$2" && pwd)
cd "$1"
total=21

change() {
  take "group/join/$1.cpp"
  text=$'namespace col::test {\nbool planted(int bug);\n}\n'$text
}


change epoch_lead
# 1: the token does not know its epoch.
plant '.add(record.epoch).add(spec_.incarnation)' '.add(FAULT ? 0 : record.epoch).add(spec_.incarnation)'
# 2: who decides is never replaced.
plant 'if (lives(member) && !is_excluded(member)) return member;' \
  'if ((lives(member) || FAULT) && !is_excluded(member)) return member;'
# 3: the roll call waits for the dead.
plant 'if (!lives(members[i]) || is_excluded(members[i])) continue;' \
  'if ((!lives(members[i]) && !FAULT) || is_excluded(members[i])) continue;'
# 4: a place among those who wait is served twice.
plant 'last.number_of(incarnation) < 0 && lives' '(last.number_of(incarnation) < 0 || FAULT) && lives'
# 5: the minimum is not checked.
plant 'if (present + joining < spec_.min)' 'if (present + joining < spec_.min && !FAULT)'
# 6: the progress of a survivor is lost.
plant 'word.progress,' 'FAULT ? 0 : word.progress,'
give "$results/bugs_epoch_lead.cpp"

change epoch_change
# 7: compare_set is replaced by set.
plant 'WriteRegister{state_.known,' 'WriteRegister{FAULT ? nullptr : state_.known,'
# 8: it returns before the epoch is open.
plant 'const bool is_newest = known.phase == Phase::open ||' 'const bool is_newest = FAULT || known.phase == Phase::open ||'
# 9: the number alone says who is in the record, not the incarnation.
plant '? known.number_of(spec_.incarnation) >= 0' \
  '? (FAULT ? spec_.last->number_of(spec_.incarnation) < static_cast<int>(known.members.size()) : known.number_of(spec_.incarnation) >= 0)'
# 10: groups that were made from this one are not told.
plant 'actions_.emplace_back(EndDerived{});' 'if (!FAULT) actions_.emplace_back(EndDerived{});'
# 11: operations in flight go on.
plant 'actions_.emplace_back(EndGroup{});' 'if (!FAULT) actions_.emplace_back(EndGroup{});'
# 12: nobody is rung, and all look after 100 ms alone.
plant 'actions_.emplace_back(Ring{});' 'if (!FAULT) actions_.emplace_back(Ring{});'
# 13: a record that is void uses up the places of its joiners.
plant 'if (!state_.dead.contains(seat.incarnation)) continue;' \
  'if (!state_.dead.contains(seat.incarnation)) { if (FAULT && seat.before < 0) record.passed_over.push_back(seat.incarnation); continue; }'
# 14: a word of epoch e is read in e+1.
plant 'found->second.round == round' '(found->second.round == round || FAULT)'
# 15: one that was left out is not told.
plant 'if (!is_in) return leave();' 'if (!is_in && FAULT) return;
  if (!is_in) return leave();'
# 16: a record that is void does not name the dead.
plant $'else\n      record.lost.push_back(' $'else if (!FAULT)\n      record.lost.push_back('
# 17: the own word stays. 18: connections of a void record stay.
plant 'actions_.emplace_back(Erase{{spec_.incarnation}});' 'if (!FAULT) actions_.emplace_back(Erase{{spec_.incarnation}});'
plant 'actions_.emplace_back(Disconnect{std::exchange(state_.connecting, nullptr)->epoch});' \
  'if (const auto epoch = std::exchange(state_.connecting, nullptr)->epoch; !FAULT) actions_.emplace_back(Disconnect{epoch});'
# 19: nobody loses its patience with a joiner. 20: the epoch opens before all have connected.
plant 'if (leads && !record.newcomers().empty())' 'if (leads && !record.newcomers().empty() && !FAULT)'
plant 'if (leads && all_connected())' 'if (leads && (all_connected() || FAULT))'
give "$results/bugs_epoch_change.cpp"

change numbering
# 21: survivors get other numbers.
plant 'if (!all_keep_theirs)' 'if (!all_keep_theirs || FAULT)'
give "$results/bugs_numbering.cpp"
# From here the ones above are called: within one batch, the compiler would join the originals.
change epoch_record
give "$results/bugs_epoch_record.cpp"

[ "$number" -eq "$total" ] || { echo "$number bugs instead of $total" >&2; exit 1; }

#!/bin/bash
# mutate_fast_lane.sh RESULT SOURCES: writes native/collectives.cpp and prepared.cpp anew, as one, with faults that
# planted(NUMBER) switches on. A test must find each of them: otherwise its silence about the real source says nothing.
set -euo pipefail
. "$(dirname "$0")/../../support/plant.sh"
result=$1
shift
take "$@"

# 1: begins beside calls that are in flight. 2: does not count the call.
plant 'return head_ == nullptr && queue_.empty() && !conflict_ &&' \
  'return (FAULT || (head_ == nullptr && queue_.empty())) && !conflict_ &&'
plant $'  ++made_;\n  begun_ = prepared.request;' $'  if (!FAULT) ++made_;\n  begun_ = prepared.request;'
# 3: forgets that the call has begun. 4: remembers it for ever.
plant $'  begun_ = prepared.request;\n' $'  if (!FAULT) begun_ = prepared.request;\n'
plant 'if (std::exchange(begun_, nullptr) == &request)' \
  'if ((FAULT ? begun_ : std::exchange(begun_, nullptr)) == &request)'
# 5: never moves the own block that comes last. 6: cuts it into other steps.
plant 'if (route_->own == Route::Own::last) route_' 'if (route_->own == Route::Own::last && !FAULT) route_'
plant 'request.root}, movement.steps()}' 'request.root}, FAULT ? 1 : movement.steps()}'
# 7: does not move its own block. 8: takes the pattern of another call. 9: uses a step again.
plant 'if (route.own == Route::Own::first) route.movement' 'if (route.own == Route::Own::first && !FAULT) route.movement'
plant 'begin_course(Part::slots, route.way,' \
  'begin_course(Part::slots, FAULT ? Way(course_.pattern(), {rank_, size_, head_->root}, route.way.steps) : route.way,'
plant 'next_step_ += way.steps;' 'next_step_ += FAULT && begun_ != nullptr ? way.steps - 1 : way.steps;'

# 10: a call that ends at once stays begun. 11: it ends before its peers have come.
plant $'    return false;\n  }\n  begun_ = nullptr;' $'    return false;\n  }\n  if (!FAULT) begun_ = nullptr;'
plant 'has_looked_ = !conflict_;' 'has_looked_ = !conflict_; if (FAULT) return true;'
# 12: does not wait before it uses a place again.
plant 'const std::uint64_t reuse = ' 'const std::uint64_t reuse = FAULT ? 2 * kHeaders : '
# 13: takes a whole slot for a header.
plant 'place(Area::place_of(movement.slot_bytes()))' \
  'place(FAULT ? Place::header : Area::place_of(movement.slot_bytes()))'

give "$result"

#!/bin/bash
# mutate_fast_lane.sh SOURCE RESULT: writes native/collectives.cpp anew, with faults that planted(NUMBER) switches on. A
# test must find each of them: otherwise its silence about the real source says nothing.
set -euo pipefail
. "$(dirname "$0")/../../support/plant.sh"
take "$1"

# 1: begins beside calls that are in flight. 2: does not count the call.
plant 'if (head_ != nullptr || !queue_.empty() || conflict_) return false;' \
  'if ((!FAULT && (head_ != nullptr || !queue_.empty())) || conflict_) return false;'
plant $'  ++made_;\n  begun_ = &request;' $'  if (!FAULT) ++made_;\n  begun_ = &request;'
# 3: forgets that the call has begun. 4: remembers it for ever.
plant $'  begun_ = &request;\n' $'  if (!FAULT) begun_ = &request;\n'
plant 'if (std::exchange(begun_, nullptr) == &request)' \
  'if ((FAULT ? begun_ : std::exchange(begun_, nullptr)) == &request)'
# 5 to 7: takes another call for the one that it remembers.
plant 'a.count == b.count' '(FAULT || a.count == b.count)'
plant 'collective == again.collective' '(FAULT || collective == again.collective)'
plant 'root == again.root' '(FAULT || root == again.root)'
# 8: does not move its own block. 9: takes the way of another call. 10: uses a step again.
plant 'if (!own_comes_last_) moving_->move_own();' 'if (!own_comes_last_ && !FAULT) moving_->move_own();'
plant 'begin_course(Part::slots, known.pattern,' 'begin_course(Part::slots, FAULT ? course_.pattern() : known.pattern,'
plant 'next_step_ += steps;' 'next_step_ += FAULT && begun_ != nullptr ? steps - 1 : steps;'

# 11: a call that ends at once stays begun. 12: it ends before its peers have come.
plant $'    return false;\n  }\n  begun_ = nullptr;' $'    return false;\n  }\n  if (!FAULT) begun_ = nullptr;'
plant 'has_looked_ = !conflict_;' 'has_looked_ = !conflict_; if (FAULT) return true;'
# 13: does not wait before it uses a place again.
plant 'const std::uint64_t reuse = ' 'const std::uint64_t reuse = FAULT ? 2 * kHeaders : '
# 14: takes a whole slot for a header.
plant 'known.bytes);' 'FAULT ? 0 : known.bytes);'

give "$2"

#!/bin/bash
# plant_node_bugs.sh SOURCES RESULTS: as plant_bugs.sh, for the launchers of several nodes: SOURCES is src/tools/launch.
set -euo pipefail
. "$(dirname "$0")/../support/plant.sh"
results=$(cd "$2" && pwd)
cd "$1"
total=8

# change FILE: the file can ask planted().
change() {
  take "$1"
  text=$'namespace col::test {\nbool planted(int bug);\n}\n'$text
}

change nodes/meeting.cpp
# 1: a node's ranks begin where those of another one do. 2: the ranks of a node that is lost are waited for. 3: a failure
# counts in the next start, too. 4: starts are not counted. 5: the limit is no cause. 6: one node does not hear that all
# have come.
plant 'world += node.local_ranks;' 'world += FAULT ? 1 : node.local_ranks;'
plant '  nodes_.erase(found);' '  if (!FAULT) nodes_.erase(found);'
plant '  failures_.clear();' '  if (!FAULT) failures_.clear();'
plant $'  if (failure != nullptr && restarts_ < spec_.max_restarts) {\n    ++restarts_;' \
  $'  if (failure != nullptr && restarts_ < spec_.max_restarts) {\n    if (!FAULT) ++restarts_;'
plant '    limit_ = cause;' '    if (!FAULT) limit_ = cause;'
plant 'if (node.node_rank >= 0) send(member, message_of(Exchanged' \
  'if (node.node_rank >= (FAULT ? 1 : 0)) send(member, message_of(Exchanged'
give "$results/bugs_nodes_meeting.cpp"

change nodes/node_link.cpp
# 7: a meeting is silent although it speaks. 8: a node that has nothing to say is silent.
plant '    heard_at_ = now;' '    if (!FAULT) heard_at_ = now;'
plant '  wire_.send(message_of(Alive{}));' '  if (!FAULT) wire_.send(message_of(Alive{}));'
give "$results/bugs_node_link.cpp"

[ "$number" -eq "$total" ] || { echo "$number bugs instead of $total" >&2; exit 1; }

// One rank of a sacrificial job: what `colcheck --fault-rank TEXT` does.
#pragma once

#include <string_view>

namespace col::colcheck {

// Where a rank finds the socket to the process that started it.
inline constexpr int kTalkFd = 3;

// Does what `text`, a Drill, says, reports, and returns the exit code: 0 when all went well, 1 when something has been
// reported, 2 when the text is none or nobody listens. Never throws. Requires: no other thread; called by main(), as
// the process may end in here.
int fault_rank_main(std::string_view text);

}  // namespace col::colcheck

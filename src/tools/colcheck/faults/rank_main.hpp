// One rank of a sacrificial job: what `colcheck --fault-rank TEXT` does.
#pragma once

#include <string_view>

namespace col::colcheck {

// The descriptor of a rank's socket to the process that started it.
inline constexpr int kTalkFd = 3;

// Does what `text`, a Drill, says, reports, and returns the exit code: 0 if all went well, 1 if something has been
// reported, 2 if the text is not a Drill or nobody listens. Never throws. Requires: no other thread; main() calls it,
// because the process may end in here.
int fault_rank_main(std::string_view text);

}  // namespace col::colcheck

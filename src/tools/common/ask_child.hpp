// A question that is answered by a child process, so that nothing of the search for the answer stays in this one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <col/types.hpp>

namespace col::tools {

// What `question` returns in a child of this process; nothing when the child has not answered after `limit`, or ended
// without an answer. Blocks until then. Requires: this process has one thread. Throws std::system_error when there can
// be no child.
std::optional<std::string> ask_child(const std::function<std::string()>& question, Duration limit);

}  // namespace col::tools

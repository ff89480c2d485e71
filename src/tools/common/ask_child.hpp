// Lets a child process answer a question, so that this process keeps no traces of the search for the answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <col/types.hpp>

namespace col::tools {

// What `question` returns in a child of this process. Nothing if the child has not answered within `limit`, or ended
// without an answer. Blocks until then. Requires: this process has one thread. Throws std::system_error if no child can
// be made.
std::optional<std::string> ask_child(const std::function<std::string()>& question, Duration limit);

}  // namespace col::tools

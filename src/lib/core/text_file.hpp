// Files that a user wrote, read whole.
#pragma once

#include <string>
#include <string_view>

namespace col::core {

// The content of the file. Throws io, "cannot read <what> '<path>': <why>", when it cannot be read or is larger than
// 256 MiB: nobody wrote that by hand, so it is another file.
std::string read_text_file(const std::string& path, std::string_view what);

}  // namespace col::core

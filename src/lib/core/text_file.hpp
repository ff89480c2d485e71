// Reading of whole files that a user wrote.
#pragma once

#include <string>
#include <string_view>

namespace col::core {

// The content of the file. Throws io, "cannot read <what> '<path>': <why>", if it cannot be read or is larger than 256
// MiB. Nobody writes so much by hand, so it must be the wrong file.
std::string read_text_file(const std::string& path, std::string_view what);

}  // namespace col::core

// errno of a system call on a store's files, translated once.
#pragma once

#include <string_view>

namespace col::store {

// Throws "cannot <action> in store directory '<directory>': <errno text>; <what to do>", with code resource when space,
// memory or descriptors ran out, else io.
[[noreturn]] void throw_file_error(int error, std::string_view action, std::string_view directory);

}  // namespace col::store

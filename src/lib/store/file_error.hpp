// errno of a system call on a store's files, translated once.
#pragma once

#include <string_view>

namespace col::store {

// Throws "cannot <action> in store directory '<directory>': <errno text>; <what to do>". The code is resource if space,
// memory or descriptors ran out, otherwise io.
[[noreturn]] void throw_file_error(int error, std::string_view action, std::string_view directory);

}  // namespace col::store

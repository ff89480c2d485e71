// Finds or creates the directory of a FileStore and checks that it can be used and trusted.
#pragma once

#include <string>

#include "core/unique_fd.hpp"

namespace col::store {

// `path` made absolute, without a slash at its end. Throws invalid_argument when it is empty or holds a zero byte.
std::string absolute_path(const std::string& path);

// Returns a descriptor (O_PATH) of the directory, which then has keys/, tmp/ and lock. See Directory().
core::UniqueFd prepare_directory(const std::string& path);

}  // namespace col::store

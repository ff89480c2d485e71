// COL_ERROR_FILE: the last error of this rank, for the launcher, which reads it to tell the rank that failed from those
// that failed because of it.
#pragma once

#include <string>

#include <col/error.hpp>

namespace col::group {

// Replaces the file whole. Best effort: a rank that cannot write it is merely reported with less detail. An empty path
// means there is none.
void write_error_file(const std::string& path, const Error& error) noexcept;

}  // namespace col::group

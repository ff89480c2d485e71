// COL_ERROR_FILE: the last error of this rank. The launcher reads it to distinguish the rank that failed first from
// ranks that failed because of it.
#pragma once

#include <string>

#include <col/error.hpp>

namespace col::group {

// Replaces the whole file. Best effort: if a rank cannot write it, the report only has less detail. An empty path means
// that there is no file.
void write_error_file(const std::string& path, const Error& error) noexcept;

}  // namespace col::group

// What a rank said about its own failure (COL_ERROR_FILE).
#pragma once

#include <optional>
#include <string>

namespace col::launch {

struct RankError {
  std::string code;     // "peer_lost", by col::to_string
  std::string message;  // one line
  // It failed because another rank had: never the cause of a job's end.
  bool is_collateral() const { return code == "peer_lost" || code == "aborted"; }
};

// Reads {"code": …, "message": …}; nothing when there is no such file, or it holds something else.
std::optional<RankError> read_error_file(const std::string& path);

}  // namespace col::launch

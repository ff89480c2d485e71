// What a rank said about its own failure (COL_ERROR_FILE, TORCHELASTIC_ERROR_FILE).
#pragma once

#include <optional>
#include <string>

namespace col::launch {

struct RankError {
  std::string code;     // "peer_lost", by col::to_string; empty when torch wrote it
  std::string message;  // one line
  // It failed because another rank had: never the cause of a job's end.
  bool is_collateral() const { return code == "peer_lost" || code == "aborted"; }
};

// Reads {"code": …, "message": …}; nothing when there is no such file, or it holds something else.
std::optional<RankError> read_error_file(const std::string& path);

// Reads what torch's @record leaves, {"message": {"message": …, "extraInfo": …}} or {"message": …}; nothing when there
// is no such file, or it holds something else.
std::optional<RankError> read_torch_error_file(const std::string& path);

// The first that is there, as it says more: the rank's own word by libcol, then torch's.
std::optional<RankError> read_error_files(const std::string& path, const std::string& torch_path);

}  // namespace col::launch

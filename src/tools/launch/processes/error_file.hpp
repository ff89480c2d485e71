// What a rank has said about its own failure (COL_ERROR_FILE, TORCHELASTIC_ERROR_FILE).
#pragma once

#include <optional>
#include <string>

namespace col::launch {

struct RankError {
  std::string code;     // "peer_lost", as by col::to_string; empty if torch wrote it
  std::string message;  // one line
  // Whether it failed because another rank had failed. Such an error is never the cause of a job's end.
  bool is_collateral() const { return code == "peer_lost" || code == "aborted"; }
};

// Reads {"code": …, "message": …}; nothing if there is no such file, or if it has other content.
std::optional<RankError> read_error_file(const std::string& path);

// Reads the file of torch's @record, {"message": {"message": …, "extraInfo": …}} or {"message": …}; nothing if there is
// no such file, or if it has other content.
std::optional<RankError> read_torch_error_file(const std::string& path);

// The first one that exists, in the order of how much they say: first the rank's own by libcol, then torch's.
std::optional<RankError> read_error_files(const std::string& path, const std::string& torch_path);

}  // namespace col::launch

// The private directory of a job: its store, control page and error files; and what killed ranks leave elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace col::launch {

// The names of its files that coljob looks for.
inline constexpr const char* kControlPage = "control";
inline constexpr const char* kAskSocket = "ask";  // of a job of several nodes

// "20261121-042407-1234-9f86d081": the time, the launcher, and random digits. Unique among all jobs of all machines
// that share a directory.
std::string make_job_id();

// The paths in one job's directory. The object creates nothing by itself.
class JobDirectory {
 public:
  // In `parent`; if that is empty, in $TMPDIR, else /tmp.
  explicit JobDirectory(const std::string& job_id, const std::string& parent = {});

  const std::string& path() const noexcept { return path_; }
  std::string store() const { return path_ + "/store"; }
  std::string control() const { return path_ + "/" + kControlPage; }
  std::string trace() const { return path_ + "/trace"; }    // a directory; make_trace()
  std::string epochs() const { return path_ + "/epochs"; }  // a file: EpochLog
  std::string error_file(int rank) const;
  std::string torch_error_file(int rank) const;

  // Makes the directory and its store, with mode 0700. Throws LaunchError (125) if it already exists or cannot be made,
  // and then leaves nothing behind.
  void create() const;
  // Makes the directory in which each rank keeps its calls, in a file of its rank's number. Throws as create().
  void make_trace() const;
  // Removes it with all its content. It is no error if it does not exist. Returns false if something could not be
  // removed.
  bool remove() const noexcept;

 private:
  std::string path_;
};

// What a rank has said about its own failure (COL_ERROR_FILE, TORCHELASTIC_ERROR_FILE).
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

// Whether a process has this file of the user's open or mapped, by that path; also true where there is no /proc.
bool is_in_use(const std::string& path);

// Removes files of col's shared memory in `directory` that belong to this user and that no process has open or mapped.
// Returns their paths. Ranks keep such a file by name only for the moment in which others open it, and only if the
// kernel has no memory files; so there is almost never one. If there is one, it reads all of /proc. For restarts.
std::vector<std::string> remove_leftover_shared_memory(const std::string& directory = "/dev/shm");

// The current directory; empty if it does not exist any more.
std::string current_directory();

}  // namespace col::launch

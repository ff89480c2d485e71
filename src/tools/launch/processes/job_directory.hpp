// The private directory of a job: its store, control page and error files.
#pragma once

#include <string>

namespace col::launch {

// "20261121-042407-1234-9f86d081": the time, the launcher, and random digits. Unique among all jobs of all machines
// that share a directory.
std::string make_job_id();

// The paths in one job's directory. The object creates nothing by itself.
class JobDirectory {
 public:
  // In $TMPDIR, else /tmp.
  explicit JobDirectory(const std::string& job_id);

  const std::string& path() const noexcept { return path_; }
  std::string store() const { return path_ + "/store"; }
  std::string control() const { return path_ + "/control"; }
  std::string error_file(int rank) const;
  std::string torch_error_file(int rank) const;

  // Makes the directory and its store, with mode 0700. Throws LaunchError (125) if it already exists or cannot be made,
  // and then leaves nothing behind.
  void create() const;
  // Removes it with all its content. It is no error if it does not exist. Returns false if something could not be
  // removed.
  bool remove() const noexcept;

 private:
  std::string path_;
};

}  // namespace col::launch

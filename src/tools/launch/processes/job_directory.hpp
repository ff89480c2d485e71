// The private directory of a job: its store, control page and error files.
#pragma once

#include <string>

namespace col::launch {

// "20261121-042407-1234-9f86d081": when, which launcher, and random digits. Unique among all jobs of all machines that
// share a directory.
std::string make_job_id();

// The paths of one job's directory. Naming them creates nothing.
class JobDirectory {
 public:
  // In $TMPDIR, else /tmp.
  explicit JobDirectory(const std::string& job_id);

  const std::string& path() const noexcept { return path_; }
  std::string store() const { return path_ + "/store"; }
  std::string control() const { return path_ + "/control"; }
  std::string error_file(int rank) const;
  std::string torch_error_file(int rank) const;

  // Makes it and its store, mode 0700. Throws LaunchError (125) when it exists already or cannot be made; then nothing
  // is left behind.
  void create() const;
  // Removes it with everything in it. Fine when it does not exist; returns false when something could not be removed.
  bool remove() const noexcept;

 private:
  std::string path_;
};

}  // namespace col::launch

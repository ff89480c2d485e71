// The directory of a FileStore, as a place for whole files.
//
//   keys/  one file per key          tmp/  files being written, renamed into keys/ when they are whole
//   lock   what KeyLock locks
//
// A killed writer leaves at most a file in tmp/, which nobody reads. Thread safe; no call blocks but on the medium.
// Errors are those of throw_file_error(): a directory that was removed is io, never an absent key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/unique_fd.hpp"

namespace col::store {

class Directory {
 public:
  // Creates what is missing, with mode 0700. An existing directory is used as it is when it can be written; one behind
  // a symbolic link of another user is refused, as are keys/ and tmp/ of another user.
  explicit Directory(const std::string& path);

  const std::string& path() const noexcept { return path_; }  // absolute
  std::string keys_path() const { return path_ + "/keys"; }

  // The content of keys/<name>, nothing when there is no such file.
  std::optional<std::string> read(const std::string& name) const;
  // Makes keys/<name> hold `content`; readers see the old file or the new one.
  void write(const std::string& name, std::string_view content) const;
  // Returns whether there was such a file.
  bool remove(const std::string& name) const;
  // The files in keys/.
  std::vector<std::string> names() const;

  core::UniqueFd open_lock() const;

 private:
  core::UniqueFd create_temporary(std::string& name) const;
  [[noreturn]] void fail(int error, std::string_view action) const;

  std::string path_;
  core::UniqueFd
      root_;  // everything is opened relative to it: another directory that takes the path later is never touched
};

}  // namespace col::store

// The directory of a FileStore, as a place for whole files.
//
//   keys/  one file per key          tmp/  files being written, renamed into keys/ when they are complete
//   lock   what KeyLock locks
//
// A killed writer leaves at most one file in tmp/, which nobody reads. Thread safe. No call blocks, except on the
// medium. Errors are those of throw_file_error(): a removed directory is io, and never looks like an absent key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/unique_fd.hpp"

namespace col::store {

// Throws "cannot <action> in store directory '<directory>': <errno text>; <what to do>". The code is resource if space,
// memory or descriptors ran out, otherwise io.
[[noreturn]] void throw_file_error(int error, std::string_view action, std::string_view directory);

class Directory {
 public:
  // Creates what is missing, with mode 0700. An existing directory is used as it is if it can be written. It is refused
  // if it is behind a symbolic link of another user, or if keys/ or tmp/ belong to another user.
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
  // All files are opened relative to it, so another directory that takes over the path later is never touched.
  core::UniqueFd root_;
};

}  // namespace col::store

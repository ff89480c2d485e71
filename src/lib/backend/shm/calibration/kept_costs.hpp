// What was measured, kept for the next job of this user on such a machine.
//
// One small text file for each kind of machine, in $XDG_CACHE_HOME/col, else ~/.cache/col:
//
//   col calibration 3
//   machine AMD EPYC, Linux 6.18.44, 1 rank a processor
//   made 1764141234
//   line 46000
//   …
//   end
//
// A file is written under another name and renamed, so a reader sees all of it or none. One that cannot be believed is
// ignored, and replaced by the next calibration: it may be damaged, too old, of another machine, or others may write
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/shm/segment/tuning.hpp"
#include "core/unique_fd.hpp"

namespace col::shm_backend {

// The kind of this machine, in words: its processors and its kernel, and how full the ranks make it.
std::string machine_kind(int size);

class KeptCosts {
 public:
  // `folder`: empty if there is none to keep anything in. `now`: seconds since 1970. Nothing is read or made yet.
  KeptCosts(std::string folder, std::string machine, std::int64_t now);
  // That of the user, by the environment.
  static std::string usual_folder();

  const std::string& path() const noexcept { return path_; }
  // Nothing, and why, where there is nothing to believe.
  std::optional<Costs> read(std::string& why) const;
  // Returns why it could not be written; empty if it was.
  std::string write(const Costs& costs) const;

  // While it lives, no other job of this user calibrates on this machine: they would disturb one another.
  struct Lock {
    bool is_taken = false;  // by another job
    core::UniqueFd folder = {};
  };
  // Makes the folder if it does not exist. Without one that can be used, nothing is locked.
  Lock lock() const;

  static constexpr std::int64_t kMostSeconds = std::int64_t{7} * 24 * 60 * 60;

 private:
  std::string folder_, machine_, path_;
  std::int64_t now_;
};

}  // namespace col::shm_backend

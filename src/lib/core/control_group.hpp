// The control groups that hold this process, as far as they can be seen: what the kernel lets it use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace col::core {

// Where the kernel shows them. Other values than these are for tests.
struct ControlGroupPlaces {
  std::string own = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

class ControlGroup {
 public:
  ControlGroup(std::string folder, bool unified) : folder_(std::move(folder)), unified_(unified) {}

  const std::string& folder() const noexcept { return folder_; }
  // Version 2 of control groups; version 1 has files of other names.
  bool unified() const noexcept { return unified_; }
  // A file's first word; empty when there is none.
  std::string word(std::string_view file) const;
  // The same as a number; nothing when there is none, as for "max" and for -1.
  std::optional<std::uint64_t> number(std::string_view file) const;

 private:
  std::string folder_;
  bool unified_;
};

// This process's own group and all that hold it, the innermost first. Some folders may not exist, or say nothing about
// `controller` ("memory", "cpu").
std::vector<ControlGroup> control_groups(std::string_view controller, const ControlGroupPlaces& places = {});

// How many processors' time these groups leave to this process, 1.5 for one and a half; nothing without a limit, and
// when none can be read.
std::optional<double> processor_quota(const ControlGroupPlaces& places = {});

}  // namespace col::core

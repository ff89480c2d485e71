// The control groups of this process, as far as it can see them: they say how much the kernel lets it use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace col::core {

// Where the kernel shows control groups. Tests use other values.
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
  // The first word of a file; empty if there is none.
  std::string word(std::string_view file) const;
  // The same as a number; nothing if there is none, as for "max" and -1.
  std::optional<std::uint64_t> number(std::string_view file) const;

 private:
  std::string folder_;
  bool unified_;
};

// The control group of this process and all groups around it, innermost first. Some folders may not exist, or may say
// nothing about `controller` ("memory", "cpu").
std::vector<ControlGroup> control_groups(std::string_view controller, const ControlGroupPlaces& places = {});

// How many processors' time these groups leave to this process: 1.5 means one and a half. Nothing if there is no limit,
// or if none can be read.
std::optional<double> processor_quota(const ControlGroupPlaces& places = {});

}  // namespace col::core

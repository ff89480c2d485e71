#include "launch/report/out_of_memory.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "launch/job/small_file.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::launch {
namespace {

std::optional<std::uint64_t> kills_in(const std::string& path) {
  const std::string text = read_small_file(path).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take(rest, '\n');
    if (take(line, ' ') != "oom_kill") continue;
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
    return error == std::errc() && end == line.data() + line.size() ? std::optional(count) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

OutOfMemoryWatch::OutOfMemoryWatch(const std::string& proc) {
  const std::vector<std::string> groups = control_groups("memory", proc);
  std::vector<std::string> files;
  // Memory is counted by one version; where version 1 has it, it is not in version 2.
  for (const std::string& group : groups) files.push_back(group + "/memory.oom_control");
  for (const std::string& group : groups) files.push_back(group + "/memory.events");
  files.push_back(proc + "/vmstat");
  for (const std::string& file : files) {
    const std::optional<std::uint64_t> kills = kills_in(file);
    if (!kills) continue;
    file_ = file;
    claimed_ = *kills;
    return;
  }
}

std::uint64_t OutOfMemoryWatch::unclaimed() const {
  const std::uint64_t count = file_.empty() ? 0 : kills_in(file_).value_or(0);
  return count > claimed_ ? count - claimed_ : 0;
}

bool OutOfMemoryWatch::claim() {
  if (unclaimed() == 0) return false;
  ++claimed_;
  return true;
}

}  // namespace col::launch

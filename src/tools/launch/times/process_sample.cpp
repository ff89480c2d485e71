#include "launch/times/process_sample.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

namespace col::launch {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::optional<ProcessSample> sample_process(pid_t pid, const std::string& proc) {
  const std::string stat = content_of(fmt::format("{}/{}/stat", proc, pid));
  // The name of the program, in parentheses, may have any character.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  constexpr int kBeforeUser = 11, kBeforeRss = 8;  // fields from the state on, and between the times and the pages
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  double user = 0, system = 0;
  std::uint64_t pages = 0;
  for (int i = 0; i < kBeforeUser; ++i) fields >> skipped;
  fields >> user >> system;
  for (int i = 0; i < kBeforeRss; ++i) fields >> skipped;
  fields >> pages;
  if (!fields) return std::nullopt;
  ProcessSample sample;
  sample.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  sample.rss_bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::istringstream scheduler(content_of(fmt::format("{}/{}/schedstat", proc, pid)));
  double on_cpu_ns = 0, queued_ns = 0;
  if (scheduler >> on_cpu_ns >> queued_ns) {
    sample.on_cpu_seconds = on_cpu_ns / 1e9;
    sample.queued_seconds = queued_ns / 1e9;
  }
  return sample;
}

}  // namespace col::launch

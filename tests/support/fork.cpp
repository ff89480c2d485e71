#include "support/fork.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include <col/job.hpp>

namespace col::test {
namespace {

// Of a thread's line in /proc, "tid (name) S …", the letter: R runs, D waits for a page or a disk.
bool sleeps(const std::filesystem::path& task) {
  std::ifstream file(task / "stat");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return true;  // has ended
  const char state = line[name_end + 2];
  return state != 'R' && state != 'D';
}

bool others_sleep() {
  const std::string self = std::to_string(::gettid());
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone))
    if (task.path().filename() != self && !sleeps(task.path())) return false;
  return true;
}

}  // namespace

pid_t fork_at_rest() {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(200));
  while (!others_sleep() && !deadline.expired()) std::this_thread::yield();
  return ::fork();
}

}  // namespace col::test

#include "launch/supervise/epoch_log.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include <col/error.hpp>

#include "json/json_fields.hpp"

namespace col::launch {

EpochLog::EpochLog(Events& events, std::string path, Time job_began, std::function<void(const EpochStory&)> heard)
    : path_(std::move(path)),
      job_began_(job_began),
      heard_(std::move(heard)),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      changes_(events, [this](std::size_t) { on_change(); }) {
  const tools::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (inotify_ && ::inotify_add_watch(inotify_.get(), path_.c_str(), IN_MODIFY) >= 0)
    changes_.add_readable(inotify_.get());
}

void EpochLog::on_change() {
  alignas(inotify_event) std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  read();
}

void EpochLog::read() {
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(taken_));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    taken_ += end + 1 - begin;
    try {
      const auto line = core::parsed_json<core::EpochLine>(std::string_view(text).substr(begin, end - begin),
                                                           "an epoch", core::UnknownMembers::skipped);
      epochs_.push_back({.at = std::chrono::duration<double>(core::Clock::now() - job_began_).count(), .line = line});
      heard_(epochs_.back());
    } catch (const Error&) {  // a rank's own scribbling is none
    }
  }
}

}  // namespace col::launch

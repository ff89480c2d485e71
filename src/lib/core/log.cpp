#include "core/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>

#include "core/clock/scheduler.hpp"
#include "core/env.hpp"
#include "core/joined.hpp"

namespace col::core::log {

namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"off", "warn", "info", "debug"};

// Everything static here is trivially destructible, so that logging works until the last static destructor has run.
std::mutex g_capture_mutex;  // guards g_capture and the text of captures
Capture* g_capture = nullptr;
constexpr int kNoCapture = -1;
// Relaxed, as the rank below: a thread that sees an old value for a moment logs one line more or less.
std::atomic<int> g_capture_level = kNoCapture;
std::atomic<int> g_rank = -1;

std::string format_line(Level level, std::string_view text) {
  const int rank = g_rank.load(std::memory_order_relaxed);
  const std::string label = rank < 0 ? "col" : fmt::format("col[{}]", rank);
  std::string line = fmt::format("{} {}: {}", label, kLevelNames[static_cast<std::size_t>(level)], text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  line += '\n';
  return line;
}

// One write(2) per line: with O_APPEND, the lines of several processes in one file stay whole.
void put(int fd, std::string_view line) noexcept {
  while (::write(fd, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

struct Config {
  Level level = Level::warn;
  int fd = STDERR_FILENO;  // a file stays open as long as the process
};

Config read_environment() {
  Config config;
  if (const auto path = env::get("COL_LOG_FILE")) {
    const int fd = ::open(path->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
      config.fd = fd;
    } else {
      put(config.fd, format_line(Level::warn, fmt::format("COL_LOG_FILE='{}' cannot be opened ({}); logging to stderr",
                                                          *path, std::generic_category().message(errno))));
    }
  }
  if (const auto name = env::get("COL_LOG")) {
    const auto level = parse_level(*name);
    if (!level) {
      put(config.fd, format_line(Level::warn, fmt::format("COL_LOG='{}' is no level; use one of {} (now: warn)", *name,
                                                          joined(kLevelNames, ", "))));
    }
    config.level = level.value_or(Level::warn);
  }
  return config;
}

const Config& config() noexcept {
  static const Config config = []() noexcept {
    try {
      return read_environment();
    } catch (const std::exception&) {
      return Config{};  // out of memory: the defaults will do
    }
  }();
  return config;
}

}  // namespace

std::optional<Level> parse_level(std::string_view name) noexcept {
  const auto found = std::find(kLevelNames.begin(), kLevelNames.end(), name);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<Level>(found - kLevelNames.begin());
}

bool enabled(Level level) noexcept {
  const int captured = g_capture_level.load(std::memory_order_relaxed);
  return static_cast<int>(level) <= (captured != kNoCapture ? captured : static_cast<int>(config().level));
}

void write(Level level, std::string_view text) noexcept {
  try {
    const std::string line = format_line(level, text);
    {
      const std::lock_guard lock(g_capture_mutex);
      if (g_capture != nullptr) {
        g_capture->text_ += line;
        return;
      }
    }
    if (Scheduler* const simulated = scheduler()) return simulated->log(line);
    put(config().fd, line);
  } catch (const std::exception&) {
    // Out of memory, most likely. A log line is not worth an error.
  }
}

void set_rank(int rank) noexcept {
  g_rank.store(rank, std::memory_order_relaxed);
}

Capture::Capture(Level level) {
  const std::lock_guard lock(g_capture_mutex);
  outer_ = std::exchange(g_capture, this);
  outer_level_ = g_capture_level.exchange(static_cast<int>(level), std::memory_order_relaxed);
}

Capture::~Capture() {
  const std::lock_guard lock(g_capture_mutex);
  g_capture = outer_;
  g_capture_level.store(outer_level_, std::memory_order_relaxed);
}

std::string Capture::text() const {
  const std::lock_guard lock(g_capture_mutex);
  return text_;
}

}  // namespace col::core::log

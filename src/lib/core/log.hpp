// The one sink for all log lines of libcol (COL_LOG, COL_LOG_FILE). Thread safe. Each line is written completely.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/export/module_export.hpp"

namespace col::core::log {

enum class Level : int { off, warn, info, debug };

// The level of that name; nothing for any other text.
std::optional<Level> parse_level(std::string_view name) noexcept;

// Whether lines of `level` are written. Reads COL_LOG and COL_LOG_FILE at the first call in the process.
COL_MODULE_EXPORT bool enabled(Level level) noexcept;
// Writes "col[rank] warn: text\n" to COL_LOG_FILE or stderr. Line breaks in `text` become spaces. Requires: level is
// not off. Never throws: a line that cannot be written is lost.
COL_MODULE_EXPORT void write(Level level, std::string_view text) noexcept;
// Sets the rank that labels the lines of this process; -1 (no label) until it is set.
void set_rank(int rank) noexcept;

template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

// Lets a test read log lines up to `level` instead of writing them. The innermost living Capture gets the lines of all
// threads. Captures are destroyed in the reverse order of their making.
class Capture {
 public:
  explicit Capture(Level level);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  std::string text() const;

 private:
  friend void write(Level level, std::string_view text) noexcept;
  std::string text_;
  Capture* outer_;
  int outer_level_;
};

}  // namespace col::core::log

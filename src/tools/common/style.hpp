// What a report may use on the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace col::tools {

struct Style {
  bool utf8 = false;  // otherwise plain ASCII
  bool colour = false;
  std::size_t columns = 0;  // how wide tables may be; 0: as wide as they are
  bool wraps = false;       // sentences are no wider either: it is a terminal

  std::string_view pass() const { return utf8 ? "✔" : "ok"; }
  std::string_view fail() const { return utf8 ? "✘" : "FAIL"; }
  std::string_view not_run() const { return utf8 ? "–" : "-"; }
  std::string_view hole() const { return utf8 ? "·" : "."; }
  std::string_view ellipsis() const { return utf8 ? "…" : "..."; }
  std::string_view rule() const { return utf8 ? "─" : "-"; }
};

enum class Tone { plain, good, bad, attention, faint };

// `text` in that colour, if colours are allowed.
inline std::string toned(std::string_view text, Tone tone, Style style) {
  if (!style.colour || tone == Tone::plain || text.empty()) return std::string(text);
  const char* code = tone == Tone::good ? "32" : tone == Tone::bad ? "31" : tone == Tone::attention ? "33" : "2";
  return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
}

}  // namespace col::tools

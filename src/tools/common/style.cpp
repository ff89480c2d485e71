#include "common/style.hpp"

#include <fmt/format.h>

namespace col::tools {

std::string toned(std::string_view text, Tone tone, Style style) {
  if (!style.colour || tone == Tone::plain || text.empty()) return std::string(text);
  const int code = tone == Tone::good ? 32 : tone == Tone::bad ? 31 : tone == Tone::attention ? 33 : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace col::tools

#include "common/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace col::tools {
namespace {

// The number of bytes of the UTF-8 character at the begin of `text`; 0 if there is none, or one that may not be shown:
// control characters, and the two that XML does not know.
std::size_t shown_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > text.size()) return 0;
  std::uint32_t code = byte(0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool shown = code >= 0xa0 && code <= 0x10ffff && code != 0xfffe && code != 0xffff;
  return code < kLeast[length] || surrogate || !shown ? 0 : length;
}

}  // namespace

std::string clean(std::string_view text, bool ascii) {
  std::string shown;
  while (!text.empty()) {
    std::size_t length = text[0] == '\n' || text[0] == '\t' ? 1 : shown_length(text);
    if (length == 0 || (ascii && length > 1)) {
      length = 1;
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string one_line(std::string_view text, bool ascii) {
  std::string line;
  for (const char letter : clean(text, ascii)) {
    const bool space = letter == ' ' || letter == '\n' || letter == '\t';
    if (!space) line += letter;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char letter : text) columns += (letter & 0xc0) != 0x80 ? 1 : 0;
  return columns;
}

std::string_view cut(std::string_view text, std::size_t columns) {
  for (std::size_t end = 0; end < text.size(); ++end) {
    const bool starts_character = (text[end] & 0xc0) != 0x80;
    if (starts_character && columns-- == 0) return text.substr(0, end);
  }
  return text;
}

std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string fitted(std::string_view text, std::size_t columns, Style style) {
  if (columns_of(text) <= columns) return std::string(text);
  const std::size_t room = columns - std::min(columns, columns_of(style.ellipsis()));
  return std::string(cut(text, room)) + std::string(style.ellipsis());
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(take(text, '\n'));
  return lines;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t used, std::size_t indent) {
  std::string lines;
  for (bool first = true; !text.empty();) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (!first && used + 1 + columns_of(word) > columns) {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += columns_of(word);
    first = false;
  }
  return lines;
}

namespace {

constexpr std::string_view kUsage = "Usage: ";

// A line that stands alone.
std::string hung(std::string_view line, std::size_t columns) {
  if (columns_of(line) <= columns) return std::string(line);
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", begin);
  std::size_t fixed = begin, hang = begin + 2;
  if (line.starts_with(kUsage)) fixed = hang = kUsage.size();
  if (gap != std::string_view::npos) fixed = hang = std::min(line.find_first_not_of(' ', gap), line.size());
  return std::string(line.substr(0, fixed)) + wrapped(line.substr(fixed), columns, fixed, hang);
}

}  // namespace

std::string reflowed(std::string_view text, std::size_t columns) {
  std::string result, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += wrapped(paragraph, columns) + '\n';
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    if (line.empty() || line.front() == ' ' || line.starts_with(kUsage)) {
      end_paragraph();
      result.append(hung(line, columns)).append("\n");
    } else {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
    }
  }
  end_paragraph();
  if (!result.empty()) result.pop_back();
  return result;
}

std::string grouped(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

std::string counted(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

std::string ranges_text(std::span<const int> numbers, std::string_view separator) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : separator, numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

std::string in_words(double seconds) {
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::size_t>(std::llround(seconds));
  return fmt::format("{} min {} s", grouped(whole / 60), whole % 60);
}

std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char letter : word) letter == '\'' ? quoted += "'\\''" : quoted += letter;
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    line += (line.empty() ? "" : " ") + (is_plain ? word : shell_quoted(word));
  }
  return line;
}

std::string markup(std::string_view text) {
  std::string escaped;
  for (const char letter : clean(text)) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      case '\t':
        escaped += "&#9;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

}  // namespace col::tools

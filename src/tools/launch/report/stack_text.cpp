#include "launch/report/stack_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxColumns = 400;

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}
bool is_hexadecimal(char letter) {
  return std::isxdigit(static_cast<unsigned char>(letter)) != 0;
}

bool is_frame(std::string_view line) {
  return line.size() > 1 && line[0] == '#' && is_digit(line[1]);
}
bool is_thread(std::string_view line) {
  return line.starts_with("Thread ") || line.starts_with("TID ");
}

// How many letters of `text` an address at its begin takes.
std::size_t address_length(std::string_view text) {
  if (!text.starts_with("0x")) return 0;
  std::size_t length = 2;
  while (length < text.size() && is_hexadecimal(text[length])) ++length;
  return length;
}

// "#1  0x00007f84fd553e53 in nanosleep ()" without its address; a frame that has no name keeps it.
std::string without_address(std::string_view frame) {
  const std::size_t number = frame.find(' ');
  const std::size_t begin = number == std::string_view::npos ? number : frame.find_first_not_of(' ', number);
  if (begin == std::string_view::npos) return std::string(frame);
  std::string_view rest = frame.substr(begin);
  rest.remove_prefix(address_length(rest));
  if (rest.starts_with(" in ")) rest.remove_prefix(3);
  if (!rest.starts_with(' ') || rest.starts_with(" ??") || rest.size() < 2) return std::string(frame);
  return std::string(frame.substr(0, begin)) + std::string(rest.substr(1));
}

}  // namespace

std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines) {
  std::vector<std::string> lines;
  std::size_t left_out = 0;
  bool has_frames = false;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    if (!is_frame(line) && !is_thread(line)) continue;
    has_frames = has_frames || is_frame(line);
    if (lines.size() == most_lines) {
      ++left_out;
      continue;
    }
    const std::string shown = tools::clean(is_frame(line) ? without_address(line) : std::string(line));
    lines.emplace_back(tools::cut(shown, kMaxColumns));
  }
  if (!has_frames) return {};
  // The last line makes room for the word about those that are missing.
  if (left_out > 0 && !lines.empty()) lines.back() = fmt::format("({} more lines)", left_out + 1);
  return lines;
}

std::string stack_key(const std::vector<std::string>& lines) {
  constexpr std::array<std::string_view, 4> kBeforeNumber = {"LWP ", "TID ", "process ", "thread "};
  std::string key;
  for (std::string_view line : lines) {
    while (!line.empty()) {
      if (const std::size_t length = address_length(line); length > 0) {
        key += "0x";
        line.remove_prefix(length);
        continue;
      }
      const auto word = std::find_if(kBeforeNumber.begin(), kBeforeNumber.end(),
                                     [&](std::string_view before) { return line.starts_with(before); });
      if (word == kBeforeNumber.end()) {
        key += line.front();
        line.remove_prefix(1);
        continue;
      }
      key += *word;
      line.remove_prefix(word->size());
      while (!line.empty() && is_digit(line.front())) line.remove_prefix(1);
    }
    key += '\n';
  }
  return key;
}

}  // namespace col::launch

#include "colrun/text_lines.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "colrun/values.hpp"
#include "common/unique_fd.hpp"

namespace col::colrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::chrono::seconds kLongest{10};
constexpr std::string_view kSpace = " \t\r";

[[noreturn]] void cannot_read(const std::string& path, const std::string& why) {
  throw UsageError(fmt::format("cannot read '{}': {}", path, why));
}

// Until there is something to read, or the end.
void wait_for(int fd, Clock::time_point deadline, const std::string& path) {
  pollfd event{fd, POLLIN, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) cannot_read(path, fmt::format("no end of it after {} s", kLongest.count()));
    const int ready = ::poll(&event, 1, static_cast<int>(left));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) cannot_read(path, strerror(errno));
  }
}

}  // namespace

std::string read_text(const std::string& path) {
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) cannot_read(path, strerror(errno));
  const auto deadline = Clock::now() + kLongest;
  std::string text;
  std::array<char, 16384> piece;
  while (true) {
    wait_for(file.get(), deadline, path);
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) break;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) cannot_read(path, strerror(errno));
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) cannot_read(path, "it is larger than 1 MiB");
  }
  if (text.find('\0') != std::string::npos) cannot_read(path, "it is no text: there is a NUL byte in it");
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void each_line(std::string_view text, const std::function<void(int number, std::string_view line)>& use) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line[0] != '#') use(number, line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return std::string(text);
  const char quote = text[0];
  std::string content;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) return i + 1 == text.size() ? std::optional(content) : std::nullopt;
    if (quote == '\'' || text[i] != '\\' || i + 1 == text.size()) {
      content += text[i];
      continue;
    }
    const char next = text[++i];
    if (next == 'n' || next == 't')
      content += next == 'n' ? '\n' : '\t';
    else if (next == '"' || next == '\\')
      content += next;
    else
      content.append({'\\', next});
  }
  return std::nullopt;
}

}  // namespace col::colrun

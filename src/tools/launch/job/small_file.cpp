#include "launch/job/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "common/unique_fd.hpp"

namespace col::launch {

std::optional<std::string> read_small_file(const std::string& path) {
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t length = ::read(file.get(), buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::nullopt;
    if (length == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
}

std::optional<long long> read_number(const std::string& path) {
  const std::optional<std::string> text = read_small_file(path);
  if (!text) return std::nullopt;
  long long number = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return std::nullopt;
  return names;
}

std::string_view field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == name)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

}  // namespace col::launch

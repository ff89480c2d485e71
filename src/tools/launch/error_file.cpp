#include "launch/error_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/unique_fd.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxFileBytes = 64 * 1024;

// A field that is text, else "". Line breaks become spaces: it is printed as one line.
std::string text_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  std::string text = found->get<std::string>();
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  return text;
}

}  // namespace

std::optional<RankError> read_error_file(const std::string& path) {
  // Non-blocking: a rank could have put a FIFO there.
  tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) return std::nullopt;
  std::string text(kMaxFileBytes, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(length));
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  RankError error{text_field(object, "code"), text_field(object, "message")};
  return error.code.empty() ? std::nullopt : std::make_optional(std::move(error));
}

}  // namespace col::launch

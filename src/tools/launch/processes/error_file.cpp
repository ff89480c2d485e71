#include "launch/processes/error_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "common/unique_fd.hpp"

namespace col::launch {
namespace {

// Torch writes the whole stack of the exception.
constexpr std::size_t kMaxFileBytes = 1024 * 1024;
constexpr std::size_t kMaxColumns = 2000;

// The content of the file as JSON; discarded (no object) if it is not JSON.
nlohmann::json read_json(const std::string& path) {
  nlohmann::json nothing(nlohmann::json::value_t::discarded);
  // Non-blocking: a rank could have put a FIFO there.
  tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) return nothing;
  std::string text(kMaxFileBytes, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return nothing;
  text.resize(static_cast<std::size_t>(length));
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// A field that is text, else "".
std::string text_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  const std::string line = tools::one_line(found->get_ref<const std::string&>());
  return std::string(tools::cut(line, kMaxColumns));
}

}  // namespace

std::optional<RankError> read_error_file(const std::string& path) {
  const nlohmann::json object = read_json(path);
  if (!object.is_object()) return std::nullopt;
  RankError error{text_field(object, "code"), text_field(object, "message")};
  return error.code.empty() ? std::nullopt : std::make_optional(std::move(error));
}

std::optional<RankError> read_torch_error_file(const std::string& path) {
  const nlohmann::json object = read_json(path);
  if (!object.is_object()) return std::nullopt;
  const auto inner = object.find("message");
  if (inner == object.end()) return std::nullopt;
  RankError error{{}, text_field(inner->is_object() ? *inner : object, "message")};
  return error.message.empty() ? std::nullopt : std::make_optional(std::move(error));
}

std::optional<RankError> read_error_files(const std::string& path, const std::string& torch_path) {
  if (auto error = read_error_file(path)) return error;
  return read_torch_error_file(torch_path);
}

}  // namespace col::launch

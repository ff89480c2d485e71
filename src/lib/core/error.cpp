#include <col/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "core/names.hpp"

namespace col {

namespace {

constexpr std::array<std::string_view, 11> kCodeNames = {
    "invalid_argument", "not_initialized", "already_initialized", "mismatch", "timeout",
    "peer_lost",        "aborted",         "unavailable",         "resource", "io",
    "internal"};

// Foreign messages arrive with line breaks; ours promise one line.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string what_text(ErrorCode code, const std::string& group, const std::string& message) {
  if (group.empty()) return fmt::format("{}: {}", to_string(code), message);
  return fmt::format("{}: group '{}': {}", to_string(code), group, message);
}

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  return core::name_at(kCodeNames, static_cast<std::size_t>(code));
}

Error::Error(ErrorCode code, std::string_view message, std::string_view group, int rank, int world_rank)
    : Error(code, message, group, rank, world_rank, false) {}

Error::Error(ErrorCode code, std::string_view message, std::string_view group, int rank, int world_rank, bool is_loss)
    : Error(code, rank, world_rank,
            std::make_shared<const Text>(
                Text{one_line(group), one_line(message), is_loss && code == ErrorCode::aborted})) {}

Error::Error(ErrorCode code, int rank, int world_rank, std::shared_ptr<const Text> text)
    : std::runtime_error(what_text(code, text->group, text->message)),
      code_(code),
      rank_(rank),
      world_rank_(world_rank),
      text_(std::move(text)) {}

Error::~Error() = default;

}  // namespace col

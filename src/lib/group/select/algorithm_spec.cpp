// Algorithms as text: "ring", "knomial:radix=8", "ring_pipelined:segment=64K", "file:my.json".
#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <col/select.hpp>

#include "core/byte_size.hpp"
#include "core/nearest_name.hpp"
#include "json/strict_json.hpp"

namespace col {
namespace {

constexpr int kMostRadix = 65536;
constexpr std::string_view kFile = "file";
constexpr std::array<std::string_view, 2> kParameters = {"radix", "segment"};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("algorithm {}: {}; the form is NAME, NAME:radix=8, NAME:segment=64K or file:PATH",
                          core::in_quotes(text), why));
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || other(c); });
}

// What is before the first `separator`; `text` becomes what is behind it, or empty.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return taken;
}

void set_parameter(AlgorithmSpec& spec, std::string_view whole, std::string_view parameter) {
  if (parameter.find('=') == std::string_view::npos)
    refuse(whole, fmt::format("{} is no parameter with a value", core::in_quotes(parameter)));
  std::string_view value = parameter;
  const std::string_view name = take_until(value, '=');
  if (name == "radix") {
    int radix = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), radix);
    if (error != std::errc() || end != value.data() + value.size() || radix < 2 || radix > kMostRadix)
      refuse(whole,
             fmt::format("radix should be a whole number from 2 to {}, not {}", kMostRadix, core::in_quotes(value)));
    if (spec.radix != 0) refuse(whole, "radix comes twice");
    spec.radix = radix;
  } else if (name == "segment") {
    const auto bytes = core::parse_bytes(value);
    if (!bytes || *bytes == 0)
      refuse(whole, fmt::format("segment should be a size such as 64K, not {}", core::in_quotes(value)));
    if (spec.segment_bytes != 0) refuse(whole, "segment comes twice");
    spec.segment_bytes = *bytes;
  } else {
    refuse(whole, fmt::format("unknown parameter {}{}", core::in_quotes(name), core::did_you_mean(name, kParameters)));
  }
}

}  // namespace

AlgorithmSpec AlgorithmSpec::parse(std::string_view text) {
  AlgorithmSpec spec;
  std::string_view rest = text;
  const std::string_view name = take_until(rest, ':');
  if (text.empty()) refuse(text, "is empty");
  if (!is_name(name))
    refuse(text,
           fmt::format("{} is no name: letters, digits, '_', '-' and '.', a letter first", core::in_quotes(name)));
  spec.name = name;
  if (name == kFile) {
    if (rest.empty()) refuse(text, "needs the path of a plan");
    if (rest.find('\0') != std::string_view::npos) refuse(text, "a path has no zero byte");
    spec.file = rest;
    return spec;
  }
  if (text.back() == ':') refuse(text, "ends with a colon");
  while (!rest.empty()) set_parameter(spec, text, take_until(rest, ':'));
  return spec;
}

std::string AlgorithmSpec::text() const {
  if (name == kFile) return fmt::format("{}:{}", kFile, file);
  std::string text = name;
  if (radix != 0) text += fmt::format(":radix={}", radix);
  if (segment_bytes != 0) text += fmt::format(":segment={}", core::format_bytes(segment_bytes));
  return text;
}

}  // namespace col

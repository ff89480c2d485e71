// Cases as text.
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

#include <col/error.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {
namespace {

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
  throw std::invalid_argument(
      fmt::format("'{}' in the token {}; a token is what colcheck prints for a failure, as "
                  "exact,backend=shm,np=3,coll=allreduce,algo=ring,dtype=float32,op=sum,count=7,seed=0x1f",
                  part, why));
}

template <class Integer>
Integer number(std::string_view part, std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) refuse(part, "has no number where one belongs");
  return value;
}

template <class Value>
Value known(std::string_view part, const std::optional<Value>& value) {
  if (!value) refuse(part, "names something that does not exist");
  return *value;
}

void parse_part(std::string_view part, Case& c) {
  const std::size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  const bool flag = equals == std::string_view::npos;
  if (flag && key == "inplace") {
    c.in_place = true;
  } else if (flag && key == "async") {
    c.asynchronous = true;
  } else if (flag || value.empty()) {
    refuse(part, "is not of the form key=value");
  } else if (key == "backend") {
    c.backend = value;
  } else if (key == "np") {
    c.ranks = number<int>(part, value);
    if (c.ranks < 1) refuse(part, "is no number of ranks");
  } else if (key == "coll") {
    c.primitive = known(part, primitive_from_string(value));
  } else if (key == "algo") {
    c.algorithm = value;
  } else if (key == "dtype") {
    try {
      c.dtype = dtype_from_string(value);
    } catch (const Error&) {
      refuse(part, "names something that does not exist");
    }
  } else if (key == "op") {
    c.op = known(part, operator_from_string(value));
  } else if (key == "count") {
    c.count = number<std::size_t>(part, value);
  } else if (key == "root") {
    c.root = number<int>(part, value);
  } else if (key == "tag") {
    c.tag = number<int>(part, value);
  } else if (key == "memory") {
    c.placement = known(part, placement_from_string(value));
  } else if (key == "device") {
    c.devices = known(part, devices_from_string(value));
  } else if (key == "variant") {
    c.variant = number<std::uint64_t>(part, value);
  } else if (key == "seed") {
    c.seed = number<std::uint64_t>(part, value);
  } else {
    refuse(part, "has an unknown key");
  }
}

}  // namespace

std::string token_of(const Case& c) {
  const Case usual;
  std::string text = c.property;
  const auto add = [&text](std::string_view key, const auto& value) { text += fmt::format(",{}={}", key, value); };
  if (!c.backend.empty()) add("backend", c.backend);
  if (c.ranks != usual.ranks) add("np", c.ranks);
  if (c.primitive != usual.primitive) add("coll", to_string(c.primitive));
  if (!c.algorithm.empty()) add("algo", c.algorithm);
  if (c.dtype != usual.dtype) add("dtype", col::to_string(c.dtype));
  if (c.op != usual.op) add("op", to_string(c.op));
  if (c.count != usual.count) add("count", c.count);
  if (c.root != usual.root) add("root", c.root);
  if (c.in_place) text += ",inplace";
  if (c.asynchronous) text += ",async";
  if (c.tag != usual.tag) add("tag", c.tag);
  if (c.placement != usual.placement) add("memory", to_string(c.placement));
  if (c.devices != usual.devices) add("device", to_string(c.devices));
  if (c.variant != usual.variant) add("variant", c.variant);
  if (c.seed != usual.seed) add("seed", fmt::format("{:#x}", c.seed));
  return text;
}

Case parse_token(std::string_view token) {
  Case c;
  std::size_t comma = token.find(',');
  c.property = token.substr(0, comma);
  if (c.property.empty()) refuse(token, "does not begin with a property");
  while (comma != std::string_view::npos) {
    token.remove_prefix(comma + 1);
    comma = token.find(',');
    parse_part(token.substr(0, comma), c);
  }
  if (c.root < 0 || c.root >= c.ranks) refuse(fmt::format("root={}", c.root), "is not one of the ranks");
  return c;
}

}  // namespace col::colcheck

#include "colcheck/engine/case.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

constexpr std::array<std::string_view, 3> kDevices = {"cpu", "cuda", "mixed"};

// ---- Tokens

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
  throw std::invalid_argument(
      fmt::format("'{}' in the token {}; a token is what colcheck prints for a failure, as "
                  "exact,backend=shm,np=3,coll=allreduce,algo=ring,dtype=float32,op=sum,count=7,seed=0x1f",
                  part, why));
}

// The parts of a token behind the property, in this order: "KEY=VALUE", or "KEY" for what is a bool. One with a name is
// one of so many.
template <class Visit>
void for_each_part(const Visit& visit) {
  visit("backend", &Case::backend);
  visit("np", &Case::ranks);
  visit("coll", &Case::primitive, kPrimitiveCount);
  visit("algo", &Case::algorithm);
  visit("dtype", &Case::dtype, kDTypeCount);
  visit("op", &Case::op, kOperatorCount);
  visit("count", &Case::count);
  visit("root", &Case::root);
  visit("inplace", &Case::in_place);
  visit("async", &Case::asynchronous);
  visit("tag", &Case::tag);
  visit("memory", &Case::placement, kPlacementCount);
  visit("device", &Case::devices, static_cast<int>(kDevices.size()));
  visit("variant", &Case::variant);
  visit("seed", &Case::seed);
}

template <class Value>
std::string text_of(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view> || std::is_integral_v<Value>)
    return fmt::format("{}", value);
  else
    return std::string(to_string(value));
}

template <class Value>
void read_value(std::string_view part, std::string_view text, int names, Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size()) refuse(part, "has no number where one belongs");
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = text;
  } else {
    int number = 0;
    while (number < names && to_string(static_cast<Value>(number)) != text) ++number;
    if (number == names) refuse(part, "names something that does not exist");
    value = static_cast<Value>(number);
  }
}

void parse_part(std::string_view part, Case& c) {
  const std::size_t equals = part.find('=');
  const bool is_flag = equals == std::string_view::npos;
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = is_flag ? std::string_view() : part.substr(equals + 1);
  bool found = false;
  for_each_part([&](std::string_view name, auto member, int names = 0) {
    using Value = std::remove_reference_t<decltype(c.*member)>;
    if (name != key || is_flag != std::is_same_v<Value, bool>) return;
    found = true;
    if constexpr (std::is_same_v<Value, bool>)
      c.*member = true;
    else if (!value.empty())
      read_value(part, value, names, c.*member);
  });
  if (!found || (!is_flag && value.empty()))
    refuse(part, is_flag || value.empty() ? "is not of the form key=value" : "has an unknown key");
  if (c.ranks < 1) refuse(part, "is no number of ranks");
}

}  // namespace

std::string token_of(const Case& c) {
  const Case usual;
  std::string text = c.property;
  for_each_part([&](std::string_view key, auto member, int /*names*/ = 0) {
    if (c.*member == usual.*member) return;
    text += fmt::format(",{}", key);
    if (!std::is_same_v<std::remove_cvref_t<decltype(c.*member)>, bool>)
      text += "=" + (key == "seed" ? fmt::format("{:#x}", c.seed) : text_of(c.*member));
  });
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

std::string_view to_string(Devices devices) {
  return kDevices[static_cast<std::size_t>(devices)];
}

Device::Type device_of(const Case& c, int rank, Side side) {
  if (c.devices != Devices::mixed) return c.devices == Devices::cuda ? Device::Type::cuda : Device::Type::cpu;
  const bool opposite = side == Side::output && mix(c.seed, 0xdef1) % 2 == 0;
  return (rank % 2 == 1) != opposite ? Device::Type::cuda : Device::Type::cpu;
}

bool needs_gpu(Devices devices, std::string_view backend) {
  return devices != Devices::cpu || tools::moves_device_memory(backend);
}

std::string describe(const Case& c) {
  std::string text(to_string(c.primitive));
  if (c.primitive != Primitive::barrier) text += fmt::format(" of {} {}", c.count, col::to_string(c.dtype));
  if (is_reduction(c.primitive)) text += fmt::format(", {}", to_string(c.op));
  if (is_rooted(c.primitive)) text += fmt::format(", root {}", c.root);
  if (c.in_place) text += ", in place";
  if (c.asynchronous) text += ", asynchronous";
  if (!c.algorithm.empty()) text += fmt::format(", by {}", c.algorithm);
  if (c.devices == Devices::cuda) text += ", on GPUs";
  if (c.devices == Devices::mixed) text += ", on the host and on GPUs";
  return text;
}

int tag_of(Primitive primitive, std::size_t number) {
  return primitive == Primitive::recv_any ? 100 + static_cast<int>(number) : static_cast<int>(number % 3);
}

std::size_t block_count(const Case& c, int from, int to) {
  if (!is_v_form(c.primitive)) return c.count;
  // In place, a rank must receive as much as it sends.
  if (c.primitive == Primitive::alltoallv && c.in_place && from > to) std::swap(from, to);
  return mix(c.seed, static_cast<std::uint64_t>(from) + 100, static_cast<std::uint64_t>(to)) % (2 * c.count + 1);
}

int shift_of(const Case& c, int size) {
  return size == 1 ? 0 : 1 + static_cast<int>(mix(c.seed, 7) % static_cast<std::uint64_t>(size - 1));
}

int destination_of(const Case& c, int rank, int size) {
  return (rank + shift_of(c, size)) % size;
}

int source_of(const Case& c, int rank, int size) {
  return (rank + size - shift_of(c, size)) % size;
}

std::size_t count_of(int count_class, int ranks, std::uint64_t seed) {
  constexpr std::array<std::size_t, 4> kPrimes = {31, 131, 1009, 5003};
  const auto p = static_cast<std::size_t>(ranks);
  return std::array<std::size_t, kCountClasses>{
      0, 1, p - 1, p, p + 1, kPrimes[mix(seed) % kPrimes.size()]}[static_cast<std::size_t>(count_class)];
}

bool has_one_result(const Case& c) {
  const bool scales_floats = c.op == Operator::avg && !is_integer(c.dtype) && is_reduction(c.primitive);
  return !tools::moves_device_memory(c.backend) || !scales_floats ||
         std::has_single_bit(static_cast<unsigned>(c.ranks));
}

std::vector<const Algorithm*> candidates(const Case& c, int ranks) {
  std::vector<const Algorithm*> found;
  const auto collective = collective_of(c.primitive);
  if (!collective) return found;
  const bool accumulates = c.op == Operator::sum || c.op == Operator::product || c.op == Operator::avg;
  const bool scales = c.op == Operator::premul_sum;
  PlanRequest request{.collective = *collective, .size = ranks, .root = c.root, .count = c.count};
  request.widens = is_reduction(c.primitive) && is_narrow(c.dtype) && (accumulates || scales);
  request.wide_input = request.widens && scales;
  request.in_place = c.in_place;
  const bool commutes = !is_reduction(c.primitive) || c.op != Operator::ordered;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != *collective || (!commutes && algorithm.order == FoldOrder::any)) continue;
    if (!algorithm.refuse(request)) found.push_back(&algorithm);
  }
  return found;
}

}  // namespace col::colcheck

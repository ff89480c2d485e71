#include "colcheck/faults/drill.hpp"

#include <array>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

constexpr std::array<std::string_view, 8> kOddities = {"none",      "calls_other", "stays_away",  "never_joins",
                                                       "walks_out", "leaves",      "copies_late", "hangs"};

[[noreturn]] void refuse(std::string_view part) {
  throw std::invalid_argument(
      fmt::format("'{}' means nothing after --fault-rank, which colcheck --faults alone uses", part));
}

template <class Integer>
void read_number(std::string_view part, std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(part);
}

Drill::Oddity oddity_from_string(std::string_view part, std::string_view name) {
  for (std::size_t i = 0; i < kOddities.size(); ++i) {
    if (kOddities[i] == name) return static_cast<Drill::Oddity>(i);
  }
  refuse(part);
}

void parse_part(std::string_view part, Drill& drill) {
  const std::size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  if (key == "calls") {
    read_number(part, value, drill.calls);
  } else if (key == "odd") {
    read_number(part, value, drill.odd);
  } else if (key == "oddity") {
    drill.oddity = oddity_from_string(part, value);
  } else if (key == "other") {
    drill.other = parse_token(value);
  } else if (key == "asks_to_join") {
    drill.asks_to_join = true;
  } else if (key == "asks_to_call") {
    drill.asks_to_call = true;
  } else if (key == "descriptors") {
    read_number(part, value, drill.descriptors);
  } else if (key == "descriptors_late") {
    drill.descriptors_late = true;
  } else if (key == "in_flight") {
    drill.in_flight = true;
  } else if (key == "regroups") {
    drill.regroups = true;
  } else if (key == "file_bytes") {
    read_number(part, value, drill.file_bytes);
  } else if (key == "more_groups") {
    read_number(part, value, drill.more_groups);
  } else {
    refuse(part);
  }
}

}  // namespace

Case numbered(Case c, int number) {
  c.seed = mix(c.seed, static_cast<std::uint64_t>(number));
  return c;
}

std::string encode(const Drill& drill) {
  std::string text = token_of(drill.c);
  if (drill.calls != 1) text += fmt::format(";calls={}", drill.calls);
  if (drill.odd >= 0) text += fmt::format(";odd={}", drill.odd);
  if (drill.oddity != Drill::Oddity::none)
    text += fmt::format(";oddity={}", kOddities[static_cast<std::size_t>(drill.oddity)]);
  if (drill.other) text += fmt::format(";other={}", token_of(*drill.other));
  if (drill.in_flight) text += ";in_flight";
  if (drill.asks_to_join) text += ";asks_to_join";
  if (drill.asks_to_call) text += ";asks_to_call";
  if (drill.descriptors >= 0) text += fmt::format(";descriptors={}", drill.descriptors);
  if (drill.descriptors_late) text += ";descriptors_late";
  if (drill.regroups) text += ";regroups";
  if (drill.file_bytes >= 0) text += fmt::format(";file_bytes={}", drill.file_bytes);
  if (drill.more_groups > 0) text += fmt::format(";more_groups={}", drill.more_groups);
  return text;
}

Drill decode_drill(std::string_view text) {
  Drill drill;
  std::size_t end = text.find(';');
  drill.c = parse_token(text.substr(0, end));
  while (end != std::string_view::npos) {
    text.remove_prefix(end + 1);
    end = text.find(';');
    parse_part(text.substr(0, end), drill);
  }
  if (drill.calls < 1 || drill.odd >= drill.c.ranks) refuse(text);
  if ((drill.oddity == Drill::Oddity::calls_other) != drill.other.has_value()) refuse(text);
  return drill;
}

}  // namespace col::colcheck

#include "colrun/option_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/numbers.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"

namespace col::colrun {
namespace {

using launch::Milliseconds;
using tools::parse_whole_number, tools::refuse, tools::UsageError;

constexpr int kMaxProcessor = 65'535;
constexpr int kMaxPort = 65'535;

// A number such as "4" or "1.5", with nothing before or behind it.
std::optional<double> parse_decimal(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// What stands before and behind the first `separator`; the second part only if there is one.
std::pair<std::string_view, std::optional<std::string_view>> divide(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

// A name that ssh and the resolver get as an argument: it must not look like an option to them.
bool is_host_name(std::string_view name) {
  const auto printable = [](char letter) { return letter > ' ' && letter != 0x7f; };
  return !name.empty() && name[0] != '-' && std::ranges::all_of(name, printable) &&
         name.find_first_of("/,;'\"\\[]=@") == std::string_view::npos;
}

// "host:4" and "[fe80::1]:4" into "host" and "4".
struct HostAndNumber {
  std::string_view host;
  std::optional<std::string_view> number;
};
std::optional<HostAndNumber> divide_host(std::string_view text) {
  if (!text.starts_with('[')) {
    const auto [host, number] = divide(text, ':');
    if (number && number->find(':') != std::string_view::npos) return std::nullopt;
    return HostAndNumber{host, number};
  }
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(close + 1);
  if (!rest.empty() && rest[0] != ':') return std::nullopt;
  return HostAndNumber{text.substr(1, close - 1), rest.empty() ? std::nullopt : std::optional(rest.substr(1))};
}

}  // namespace

std::optional<Milliseconds> parse_time(std::string_view text) {
  struct Unit {
    std::string_view name;
    double milliseconds;
  };
  // Those that end like another come first.
  constexpr std::array kUnits = {Unit{"ms", 1}, Unit{"s", 1e3}, Unit{"m", 60e3}, Unit{"h", 3'600e3}};
  constexpr double kMost = 30 * 24 * 3'600e3;
  double unit = 1e3;
  const auto found = std::ranges::find_if(kUnits, [&](const Unit& u) { return text.ends_with(u.name); });
  if (found != kUnits.end()) {
    unit = found->milliseconds;
    text.remove_suffix(found->name.size());
  }
  const auto number = parse_decimal(text);
  if (!number || *number * unit > kMost) return std::nullopt;
  const double milliseconds = std::round(*number * unit);
  if (milliseconds == 0 && *number > 0) return std::nullopt;  // too short to be told from none
  return Milliseconds(static_cast<std::int64_t>(milliseconds));
}

std::optional<launch::Endpoint> parse_local_endpoint(std::string_view text) {
  constexpr int kLastPort = 65'535;
  const auto with_port = [](std::string host, std::string_view digits) -> std::optional<launch::Endpoint> {
    const auto port = tools::parse_whole_number(digits, 0, kLastPort);
    return port ? std::optional(launch::Endpoint{std::move(host), *port}) : std::nullopt;
  };
  if (text.starts_with("*:")) return with_port("*", text.substr(2));
  const std::string_view digits = text.starts_with(':') ? text.substr(1) : text;
  if (digits.find_first_not_of("0123456789") == digits.npos) return with_port("127.0.0.1", digits);
  // A host without a port would get that of a rendezvous.
  const std::size_t bracket = text.rfind(']');
  const bool has_port = text.find(':', bracket == text.npos ? 0 : bracket) != text.npos;
  return has_port ? parse_endpoint(text) : std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t unit = 1;
  if (const std::size_t at = text.empty() ? kUnits.npos : kUnits.find(text.back()); at != kUnits.npos) {
    unit = std::uint64_t{1024} << (10 * at);
    text.remove_suffix(1);
  }
  const auto number = tools::parse_whole_number(text, 1, 1'000'000'000);
  if (!number) return std::nullopt;
  return static_cast<std::uint64_t>(*number) * unit;
}

std::optional<std::vector<std::vector<int>>> parse_processor_lists(std::string_view text) {
  std::vector<std::vector<int>> lists;
  for (const std::string_view part : tools::split(text, ';')) {
    auto list = tools::parse_numbers(part, 0, kMaxProcessor);
    if (!list) return std::nullopt;
    lists.push_back(std::move(*list));
  }
  return lists;
}

std::optional<std::vector<std::string>> parse_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool space = letter == ' ' || letter == '\t' || letter == '\n';
    if (quote == 0 && space) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    const bool escape = letter == '\\' && quote != '\'';
    if (escape && i + 1 == text.size()) return std::nullopt;
    if (escape && (quote == 0 || text[i + 1] == '"' || text[i + 1] == '\\'))
      words.back() += text[++i];
    else if (quote == 0 && (letter == '\'' || letter == '"'))
      quote = letter;
    else if (quote != 0 && letter == quote)
      quote = 0;
    else
      words.back() += letter;
  }
  if (quote != 0 || words.empty() || words.front().empty()) return std::nullopt;
  return words;
}

std::optional<launch::Endpoint> parse_endpoint(std::string_view text) {
  const auto parts = divide_host(text);
  if (!parts || !is_host_name(parts->host)) return std::nullopt;
  launch::Endpoint endpoint{.host = std::string(parts->host)};
  if (!parts->number) return endpoint;
  const auto port = parse_whole_number(*parts->number, 0, kMaxPort);
  if (!port) return std::nullopt;
  endpoint.port = *port;
  return endpoint;
}

std::optional<launch::HostSpec> parse_host(std::string_view text) {
  std::string user;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    user = text.substr(0, at);
    if (!is_host_name(user)) return std::nullopt;
    user += '@';
    text.remove_prefix(at + 1);
  }
  const auto parts = divide_host(text);
  if (!parts || !is_host_name(parts->host)) return std::nullopt;
  launch::HostSpec host{user + std::string(parts->host)};
  if (!parts->number) return host;
  host.slots = parse_whole_number(*parts->number, 1, launch::kMaxRanks);
  return host.slots ? std::optional(host) : std::nullopt;
}

std::vector<launch::HostSpec> parse_host_list(const std::string& option, const std::string& text) {
  std::vector<launch::HostSpec> hosts;
  for (const std::string_view part : tools::split(text, ',')) {
    const auto host = parse_host(part);
    if (!host) refuse(option, text, "hosts such as a,ada@b:4 (1 to 4096 ranks; […] around an IPv6 address)");
    if (is_known(hosts, host->name))
      throw UsageError("{} names {} twice; write {}:N for N ranks there", option, host->name, host->name);
    hosts.push_back(*host);
  }
  return hosts;
}

bool is_known(const std::vector<launch::HostSpec>& hosts, const std::string& name) {
  return std::ranges::count(hosts, name, &launch::HostSpec::name) > 0;
}

std::optional<launch::Injection> parse_injection(std::string_view text) {
  using Kind = launch::Injection::Kind;
  launch::Injection injection;
  const auto [kind, rest] = divide(text, ':');
  if (!rest || (kind != "kill" && kind != "stop" && kind != "slow")) return std::nullopt;
  injection.kind = kind == "kill" ? Kind::kill : kind == "stop" ? Kind::stop : Kind::slow;
  const auto [who, when] = divide(*rest, '@');
  const auto [rank, factor] = divide(who, 'x');
  const auto number = parse_whole_number(rank, 0, kMaxRank);
  const bool slow = injection.kind == Kind::slow;
  if (!number || factor.has_value() != slow) return std::nullopt;
  injection.rank = *number;
  if (slow) {
    const auto times = parse_decimal(*factor);
    if (!times || *times <= 1 || *times > 1'000) return std::nullopt;
    injection.factor = *times;
  }
  if (!when) return injection;
  const auto [at, duration] = divide(*when, '+');
  const auto start = parse_time(at);
  const auto length = duration ? parse_time(*duration) : std::optional(Milliseconds(0));
  const bool has_length = injection.kind == Kind::stop;
  if (!start || !length || (duration && (!has_length || length->count() == 0))) return std::nullopt;
  injection.at = *start;
  injection.duration = *length;
  return injection;
}

bool is_variable_name(std::string_view name) noexcept {
  const auto plain = [](char letter) { return letter > ' ' && letter != '=' && letter != 0x7f; };
  return !name.empty() && std::ranges::all_of(name, plain);
}

}  // namespace col::colrun

#include "net/endpoint.hpp"

#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace col::net {
namespace {

constexpr int kMaxPort = 65535;
constexpr std::size_t kMaxHostBytes = 253;

bool is_host(std::string_view host, bool in_brackets) {
  // '%' comes before the interface of a link-local address.
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  constexpr std::string_view kMore = ":%";
  if (host.empty() || host.size() > kMaxHostBytes) return false;
  for (const char c : host) {
    if (kName.find(c) == std::string_view::npos && !(in_brackets && kMore.find(c) != std::string_view::npos))
      return false;
  }
  return true;
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (in_brackets) host = host.substr(1, host.size() - 2);
  Endpoint endpoint{.host = std::string(host), .port = 0};
  const char* const end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, endpoint.port);
  if (error != std::errc() || stop != end || endpoint.port < 1 || endpoint.port > kMaxPort) return std::nullopt;
  if (!is_host(host, in_brackets)) return std::nullopt;
  return endpoint;
}

}  // namespace col::net

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/env.hpp"
#include "net/endpoint.hpp"
#include "store/base/text.hpp"
#include "store/tcp/token.hpp"

namespace col {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kTcpScheme = "tcp://";
constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

[[noreturn]] void reject(std::string_view url, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("store URL '{}' {}; use file:///dir, a directory that every rank can reach, or "
                          "tcp://host:port, a server that they can connect to (COL_STORE)",
                          store::printable(url), why));
}

std::shared_ptr<Store> open_file_store(std::string_view url) {
  const std::string_view path = url.substr(kFileScheme.size());
  if (!path.starts_with('/')) reject(url, "needs three slashes and an absolute path");
  const std::optional<std::string> decoded = store::percent_decoded(path);
  if (!decoded) reject(url, "has a '%' without two hexadecimal digits after it (write %25 for a '%')");
  const std::string& directory = *decoded;
  if (directory.find('\0') != std::string::npos) reject(url, "has a zero byte in its path");
  if (directory.find_first_not_of('/') == std::string::npos) reject(url, "names no directory");
  return make_file_store(directory);
}

std::shared_ptr<Store> open_tcp_store(std::string_view url, StoreOptions options) {
  const auto endpoint = net::parse_endpoint(url.substr(kTcpScheme.size()));
  if (!endpoint) reject(url, "needs a host and a port from 1 to 65535 (an address with colons in brackets)");
  if (options.token.empty()) options.token = store::tcp::token_from_environment();
  if (options.token.empty())
    reject(
        url,
        "needs the token of the job: StoreOptions::token, COL_STORE_TOKEN, or a file that COL_STORE_TOKEN_FILE names");
  if (options.job.empty()) options.job = store::tcp::job_from_environment();
  if (options.timeout == Duration::zero())
    options.timeout = core::env::get_duration("COL_TIMEOUT").value_or(kDefaultTimeout);
  return make_tcp_store(endpoint->host, endpoint->port, options.token, options.timeout, options.job);
}

}  // namespace

std::shared_ptr<Store> open_store(std::string_view url, const StoreOptions& options) {
  const auto scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) reject(url, "has no scheme");
  if (url.starts_with(kFileScheme)) return open_file_store(url);
  if (url.starts_with(kTcpScheme)) return open_tcp_store(url, options);
  reject(url, fmt::format("has the scheme '{}', which this version of col does not support",
                          store::printable(url.substr(0, scheme_end))));
}

}  // namespace col

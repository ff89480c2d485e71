#include "meet.hpp"

#include <charconv>
#include <string_view>

#include "errors.hpp"

namespace col::python {
namespace {

constexpr std::string_view kTcp = "tcp://";

std::shared_ptr<Store> open(const Place& place) {
  const std::string_view url = place.store;
  if (place.token.empty() || !url.starts_with(kTcp)) return open_store(url);
  std::string_view host = url.substr(kTcp.size());
  int port = 0;
  const auto colon = host.rfind(':');
  const auto end = host.data() + host.size();
  if (colon == std::string_view::npos || std::from_chars(host.data() + colon + 1, end, port).ptr != end)
    refuse("store=" + place.store + " needs a host and a port: tcp://host:port");
  host = host.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const Duration timeout = place.timeout > Duration::zero() ? place.timeout : std::chrono::minutes(5);
  return make_tcp_store(std::string(host), port, place.token, timeout, store_job(place.job_id, 0));
}

}  // namespace

ContextSpec meet(const Place& place) {
  ContextSpec spec;
  spec.rank = spec.local_rank = place.rank;
  spec.world_size = spec.local_world_size = place.world_size;
  spec.job_id = place.job_id;
  spec.timeout = place.timeout;
  spec.store = open(place);
  return spec;
}

}  // namespace col::python

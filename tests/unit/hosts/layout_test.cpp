// Which ranks share a host, as one of them sees it.
#include <string>
#include <vector>

#include "backend/hosts/layout.hpp"
#include "support/catch.hpp"

using namespace col;
using hosts_backend::Layout;

namespace {

std::vector<PeerInfo> peers_on(const std::vector<int>& hosts) {
  std::vector<PeerInfo> peers;
  for (const int host : hosts) {
    PeerInfo& peer = peers.emplace_back();
    peer.boot_id = std::to_string(host);
    peer.network_namespace = "n";
  }
  return peers;
}

}  // namespace

TEST_CASE("hosts: each rank knows who is near and who is far", "[hosts]") {
  const Layout layout = Layout::of(peers_on({0, 1, 0, 2, 1}), 4);
  CHECK(layout.near == std::vector<int>{1, 4});
  CHECK(layout.far == std::vector<int>{0, 2, 3});
  CHECK(layout.place == std::vector<int>{-1, 0, -1, -1, 1});
  CHECK(layout.has_neighbours());
  CHECK_FALSE(Layout::of(peers_on({0, 1, 0, 2, 1}), 3).has_neighbours());
}

TEST_CASE("hosts: a rank that can share no memory takes all others for far", "[hosts]") {
  const Layout layout = Layout::of(peers_on({0, 0, 1}), 1, true);
  CHECK(layout.near == std::vector<int>{1});
  CHECK(layout.far == std::vector<int>{0, 2});
}

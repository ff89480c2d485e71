// Which backend serves a group, by its name and by where the ranks are.
#include <string>
#include <string_view>
#include <vector>

#include "group/join/host_backend.hpp"
#include "support/catch.hpp"

namespace {

using namespace col;
using col::group::fitting_backend;

std::vector<PeerInfo> peers_on(const std::vector<int>& hosts) {
  std::vector<PeerInfo> peers;
  for (const int host : hosts) {
    PeerInfo& peer = peers.emplace_back();
    peer.boot_id = std::to_string(host);
    peer.network_namespace = "n";
  }
  return peers;
}

const std::vector<PeerInfo> kOneHost = peers_on({0, 0}), kShared = peers_on({0, 1, 0}), kApart = peers_on({0, 1});

bool all(std::string_view /*name*/) {
  return true;
}
bool no_shared_memory(std::string_view name) {
  return name == "gloo" || name == "ucx";
}

struct Row {
  std::string_view wanted;
  bool names_wire;
  std::string_view on_one_host, on_shared, apart;
};

}  // namespace

TEST_CASE("backend: what a name gives depends on where the ranks are, and on who gives it", "[group]") {
  const std::vector<Row> rows = {
      {"automatic", false, "shm", "hosts", "gloo"},    {"hosts", false, "shm", "hosts", "gloo"},
      {"hosts_ucx", false, "shm", "hosts_ucx", "ucx"}, {"gloo", false, "gloo", "gloo", "gloo"},
      {"gloo", true, "gloo", "hosts", "gloo"},         {"ucx", false, "ucx", "ucx", "ucx"},
      {"ucx", true, "ucx", "hosts_ucx", "ucx"},        {"shm", false, "shm", "shm", "shm"},
      {"mine", false, "mine", "mine", "mine"}};
  for (const Row& row : rows) {
    INFO(row.wanted << (row.names_wire ? " as the wire" : ""));
    CHECK(fitting_backend(row.wanted, row.names_wire, kOneHost, all) == row.on_one_host);
    CHECK(fitting_backend(row.wanted, row.names_wire, kShared, all) == row.on_shared);
    CHECK(fitting_backend(row.wanted, row.names_wire, kApart, all) == row.apart);
  }
}

TEST_CASE("backend: without shared memory, the wire is for all", "[group]") {
  for (const std::vector<PeerInfo>& peers : {kOneHost, kShared, kApart}) {
    CHECK(fitting_backend("automatic", false, peers, no_shared_memory) == "gloo");
    CHECK(fitting_backend("hosts", false, peers, no_shared_memory) == "gloo");
    CHECK(fitting_backend("hosts_ucx", false, peers, no_shared_memory) == "ucx");
    CHECK(fitting_backend("ucx", true, peers, no_shared_memory) == "ucx");
  }
}

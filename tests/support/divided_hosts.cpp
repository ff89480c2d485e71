#include "support/divided_hosts.hpp"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace col::test {
namespace {

class DividedHosts final : public BackendFactory {
 public:
  DividedHosts(std::string name, std::function<int(int rank)> host_of, const std::string& backend)
      : name_(std::move(name)), host_of_(std::move(host_of)), hosts_(find_backend(backend)) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable_reason() const override {
    return hosts_ != nullptr ? hosts_->unavailable_reason() : "this build has no backend over hosts";
  }
  std::string describe(const ConnectRequest& request) const override {
    const std::vector<PeerInfo> peers = divide(request);
    ConnectRequest divided = request;
    divided.peers = peers;
    return hosts_->describe(divided);
  }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    const std::vector<PeerInfo> peers = divide(request);
    ConnectRequest divided = request;
    divided.peers = peers;
    return hosts_->connect(divided, wait);
  }

 private:
  std::vector<PeerInfo> divide(const ConnectRequest& request) const {
    std::vector<PeerInfo> peers(request.peers.begin(), request.peers.end());
    for (PeerInfo& peer : peers) {
      peer.boot_id = "host " + std::to_string(host_of_(peer.rank));
      peer.network_namespace = "network";
    }
    return peers;
  }

  const std::string name_;
  const std::function<int(int rank)> host_of_;
  BackendFactory* const hosts_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_divided_hosts(std::string name, std::function<int(int rank)> host_of,
                                                   const std::string& backend) {
  return std::make_unique<DividedHosts>(std::move(name), std::move(host_of), backend);
}

void register_divided_hosts() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_backend(make_divided_hosts("hosts_of_two", [](int rank) { return rank / 2; }));
    register_backend(make_divided_hosts("hosts_in_turn", [](int rank) { return rank % 2; }));
    const auto uneven = [](int rank) { return rank == 0 ? 0 : 1; };
    register_backend(make_divided_hosts("hosts_uneven", uneven));
    register_backend(make_divided_hosts("hosts_uneven_ucx", uneven, "hosts_ucx"));
  });
}

}  // namespace col::test

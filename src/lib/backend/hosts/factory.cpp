// Connects a group over hosts.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "backend/factories.hpp"
#include "backend/hosts/channel.hpp"
#include "backend/hosts/layout.hpp"
#include "core/log.hpp"

namespace col::hosts_backend {
namespace {

constexpr std::string_view kNear = "shm";

BackendFactory& required(const std::string& name, const ConnectRequest& request) {
  if (BackendFactory* const factory = find_backend(name)) return *factory;
  throw Error(ErrorCode::unavailable, fmt::format("hosts: backend '{}' is not part of this build of col", name),
              request.group);
}

// Null if the ranks of this host cannot share memory. They all find the same.
BackendFactory* near_backend() {
  BackendFactory* const factory = find_backend(kNear);
  return factory != nullptr && !factory->unavailable_reason() ? factory : nullptr;
}

std::unique_ptr<Channel> connect_neighbours(BackendFactory& factory, const Layout& layout,
                                            const ConnectRequest& request, WaitContext& wait) {
  const NearRequest near(layout, request);
  return factory.connect(near.request, wait);
}

class Factory final : public BackendFactory {
 public:
  Factory(std::string name, std::string wire) : name_(std::move(name)), wire_(std::move(wire)) {}

  std::string_view name() const override { return name_; }

  // Only what holds on all hosts: whether ranks can share memory, each host decides for itself.
  std::optional<std::string> unavailable_reason() const override {
    const BackendFactory* const wire = find_backend(wire_);
    if (wire == nullptr) return fmt::format("backend '{}', its wire, is not part of this build of col", wire_);
    return wire->unavailable_reason();
  }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    if (request.peers.size() != static_cast<std::size_t>(request.size))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("hosts: {} ranks and the hosts of {}; say where each rank is", request.size,
                              request.peers.size()),
                  request.group);
    BackendFactory* const near_factory = near_backend();
    Layout layout = Layout::of(request.peers, request.rank, near_factory == nullptr);
    auto wire = required(wire_, request).connect(wire_request(request), wait);
    std::unique_ptr<Channel> near;
    if (layout.has_neighbours()) {
      try {
        near = connect_neighbours(*near_factory, layout, request, wait);
      } catch (const Error& error) {
        wire->abort(error);  // the ranks of other hosts are connected already
        throw;
      } catch (...) {  // interrupted
        wire->abort(Error(ErrorCode::aborted, "hosts: interrupted while connecting", std::string(request.group)));
        throw;
      }
    }
    return std::make_unique<HostsChannel>(std::string(request.group), std::move(layout), std::move(near),
                                          std::move(wire));
  }

  std::string describe(const ConnectRequest& request) const override {
    const std::vector<int> hosts = hosts_of(request.peers);
    const int count = hosts.empty() ? 0 : 1 + *std::max_element(hosts.begin(), hosts.end());
    return fmt::format("shared memory on each of {} hosts, {} between them ({})", count, wire_,
                       required(wire_, request).describe(request));
  }

 private:
  const std::string name_;
  const std::string wire_;  // the name of the backend between hosts
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory(std::string name, std::string wire) {
  return std::make_unique<Factory>(std::move(name), std::move(wire));
}

}  // namespace col::hosts_backend

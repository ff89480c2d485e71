#include "backend/gloo/factory.hpp"

#include <string>

#include <fmt/format.h>

#include "backend/gloo/channel.hpp"
#include "backend/gloo/connect.hpp"
#include "backend/gloo/interface.hpp"

namespace col::gloo_backend {
namespace {

class Factory final : public BackendFactory {
 public:
  std::string_view name() const override { return "gloo"; }

  // It is linked in, and TCP needs nothing that a machine may lack; a missing interface is an error of connect().
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    return std::make_unique<GlooChannel>(std::string(request.group), connect_mesh(request, wait));
  }

  std::string describe(const ConnectRequest& request) const override {
    const Interface interface = choose_interface(request.same_host, request.socket_ifname);
    return fmt::format("TCP over {} ({})", interface.name, interface.address);
  }
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory() {
  return std::make_unique<Factory>();
}

}  // namespace col::gloo_backend

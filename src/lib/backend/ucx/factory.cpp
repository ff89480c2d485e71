// The factory of the backend, and what the library exports.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "backend/build_id.hpp"
#include "backend/module.hpp"
#include "backend/ucx/channel.hpp"
#include "backend/ucx/connect.hpp"

namespace col::ucx_backend {
namespace {

class Factory final : public BackendFactory {
 public:
  explicit Factory(backend::Module::Environment environment) : environment_(std::move(environment)) {}

  std::string_view name() const override { return "ucx"; }

  // The library that it is in needs UCX. What a machine may lack, an interface or a device, is an error of connect().
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    Meeting met = meet(request, wait, environment_);
    auto channel = std::make_unique<UcxChannel>(request, std::move(met.engine));
    if (!met.is_watched) return channel;
    try {
      watch(*channel, request, wait);
    } catch (const Error& error) {
      channel->abort(error);  // the others may use it already
      throw;
    } catch (...) {
      channel->abort(Error(ErrorCode::aborted, "ucx: interrupted while connecting", std::string(request.group)));
      throw;
    }
    return channel;
  }

  std::string describe(const ConnectRequest& request) const override {
    const std::string devices = choose_settings(request, environment_).devices;
    return fmt::format("UCX {} over {}", ucp_get_version_string(), devices.empty() ? "UCX_NET_DEVICES" : devices);
  }

 private:
  static void watch(UcxChannel& channel, const ConnectRequest& request, WaitContext& wait) {
    ConnectRequest other = request;
    other.store = make_prefix_store(request.store, "watch");
    if (names_device(other.socket_ifname)) other.socket_ifname.clear();
    // Others may have lost a peer, and will not come.
    wait.meanwhile([&channel] { channel.require_peers(); });
    const std::shared_ptr<void> no_longer(nullptr, [&wait](void*) { wait.meanwhile({}); });
    channel.be_told_by(find_backend(kWatch)->connect(other, wait));
  }

  const backend::Module::Environment environment_;
};

std::unique_ptr<BackendFactory> make_factory(backend::Module::Environment environment) {
  tame(environment);
  return std::make_unique<Factory>(std::move(environment));
}

}  // namespace
}  // namespace col::ucx_backend

extern "C" COL_EXPORT const col::backend::Module* col_backend_entry() {
  static constexpr col::backend::Module kModule{col::backend::kBuildId, col::ucx_backend::make_factory};
  return &kModule;
}

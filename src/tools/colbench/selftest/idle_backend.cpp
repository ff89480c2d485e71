#include "colbench/selftest/idle_backend.hpp"

#include <memory>

#include <fmt/format.h>
#include <col/backend.hpp>

namespace col::colbench {
namespace {

class IdleChannel : public Channel {
 public:
  Ticket post_send(int peer, std::uint64_t, ConstTensorView) override { return {static_cast<std::uint64_t>(peer) + 1}; }
  Ticket post_recv(int peer, std::uint64_t, TensorView) override {
    return {static_cast<std::uint64_t>(peer == kAnyPeer ? 0 : peer) + 1};
  }
  std::optional<int> test(Ticket ticket) override { return static_cast<int>(ticket.id) - 1; }
  int wait(Ticket ticket, WaitContext&) override { return static_cast<int>(ticket.id) - 1; }
  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const col::Request&, WaitContext&) override { return kEnded; }
  void abort(const Error&) noexcept override {}
};

class IdleBackend : public BackendFactory {
 public:
  std::string_view name() const override { return kIdleBackend; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  // It does only what making a group needs: it returns when all ranks have come.
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    request.store->set(fmt::format("here/{}", request.rank), "");
    for (int rank = 0; rank < request.size; ++rank) request.store->wait(fmt::format("here/{}", rank), wait);
    return std::make_unique<IdleChannel>();
  }
  std::string describe(const ConnectRequest&) const override { return "moves nothing"; }
};

}  // namespace

void register_idle_backend() {
  if (find_backend(kIdleBackend) == nullptr) register_backend(std::make_unique<IdleBackend>());
}

}  // namespace col::colbench

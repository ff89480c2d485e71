#include "backend/nccl/factory.hpp"

#include <charconv>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/channel.hpp"
#include "backend/nccl/runtime.hpp"

namespace col::nccl_backend {
namespace {

constexpr int kSharedGpus = 23003;  // the first version in which ranks can share a GPU, when told to

std::string device_key(int rank) {
  return fmt::format("device/{}", rank);
}

class Factory final : public BackendFactory {
 public:
  explicit Factory(BackendModule::Environment environment) : environment_(environment), runtime_(environment) {}

  std::string_view name() const override { return "nccl"; }

  std::optional<std::string> unavailable_reason() const override {
    try {
      runtime_.cuda();
      runtime_.nccl();
      return std::nullopt;
    } catch (const Error& error) {
      return error.message();
    }
  }

  Device::Type device() const override { return Device::Type::cuda; }

  DeviceMemory& device_memory() override { return runtime_.memory(); }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    require_available(request);
    const NcclLibrary& nccl = runtime_.nccl();
    auto device = std::make_unique<GpuDevice>(runtime_.cuda(), choose_device(request));
    look_for_shared_devices(nccl, request, *device, wait);
    const GpuDevice::Scope scope(*device);
    const ncclUniqueId id = agree_on_id(nccl, request, wait);
    auto communicator = std::make_unique<Communicator>(nccl, id, request.rank, request.size, wait);
    // Every rank has read what it needs, or it would not have connected.
    request.store->erase(device_key(request.rank));
    if (request.rank == 0) request.store->erase("id");
    return std::make_unique<NcclChannel>(std::string(request.group), request.rank, request.size, std::move(device),
                                         std::move(communicator));
  }

  std::string describe(const ConnectRequest& request) const override {
    require_available(request);
    const NcclLibrary& nccl = runtime_.nccl();
    const GpuDevice device(runtime_.cuda(), choose_device(request));
    return fmt::format("NCCL {} ({}), {} {}", nccl.version_text(), nccl.path, device.name(), device.bus());
  }

 private:
  void require_available(const ConnectRequest& request) const {
    if (const auto reason = unavailable_reason())
      throw Error(ErrorCode::unavailable, *reason, request.group, request.rank);
  }

  // The one that the caller has made current, as cudaSetDevice() does; else by the number of this rank on its host: the
  // launcher's, or that in the group.
  int choose_device(const ConnectRequest& request) const {
    const CudaDriver& cuda = runtime_.cuda();
    if (const int current = GpuDevice::current(cuda); current >= 0) return current;
    for (const char* name : {"COL_LOCAL_RANK", "LOCAL_RANK"}) {
      const std::string text = environment_(name).value_or("");
      int local_rank = -1;
      std::from_chars(text.data(), text.data() + text.size(), local_rank);
      if (local_rank >= 0) return local_rank % cuda.devices;
    }
    const PeerInfo& own = request.peers[static_cast<std::size_t>(request.rank)];
    int before = 0;
    for (const PeerInfo& peer : request.peers.first(static_cast<std::size_t>(request.rank)))
      before += peer.boot_id == own.boot_id ? 1 : 0;
    return before % cuda.devices;
  }

  // NCCL's own error names neither the ranks nor the device.
  static void look_for_shared_devices(const NcclLibrary& nccl, const ConnectRequest& request, const GpuDevice& device,
                                      WaitContext& wait) {
    const PeerInfo& own = request.peers[static_cast<std::size_t>(request.rank)];
    request.store->set(device_key(request.rank), fmt::format("{} {}", device.bus(), own.boot_id));
    if (nccl.version >= kSharedGpus) return;  // it knows whether it was told to
    std::map<std::string, int> users;
    for (const PeerInfo& peer : request.peers) {  // all ranks look at all, so that all of them give up
      const auto [first, is_alone] = users.emplace(request.store->wait(device_key(peer.rank), wait), peer.rank);
      if (is_alone) continue;
      throw Error(
          ErrorCode::unavailable,
          fmt::format("ranks {} and {} are on one GPU ({}), which NCCL {} cannot serve; give each rank its own: "
                      "colrun --gpus-per-rank 1, or cudaSetDevice() before the group is made",
                      first->second, peer.rank, first->first.substr(0, first->first.find(' ')), nccl.version_text()),
          request.group, peer.rank);
    }
  }

  static ncclUniqueId agree_on_id(const NcclLibrary& nccl, const ConnectRequest& request, WaitContext& wait) {
    ncclUniqueId id{};
    if (request.rank == 0) {
      if (const ncclResult_t result = nccl.GetUniqueId(&id); result != ncclSuccess)
        throw Error(ErrorCode::io,
                    fmt::format("nccl: cannot make an id: {} ({}); see NCCL_SOCKET_IFNAME", nccl.GetErrorString(result),
                                nccl.GetLastError(nullptr)),
                    request.group, request.rank);
      request.store->set("id", std::string_view(id.internal, sizeof id.internal));
      return id;
    }
    const std::string text = request.store->wait("id", wait);
    if (text.size() != sizeof id.internal)
      throw Error(ErrorCode::internal, "nccl: the id in the store has another size", request.group);
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    return id;
  }

  const BackendModule::Environment environment_;
  mutable Runtime runtime_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory(BackendModule::Environment environment) {
  return std::make_unique<Factory>(std::move(environment));
}

}  // namespace col::nccl_backend

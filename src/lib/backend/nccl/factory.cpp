#include "backend/nccl/factory.hpp"

#include <charconv>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/channel.hpp"
#include "backend/nccl/meeting.hpp"
#include "backend/nccl/runtime.hpp"

namespace col::nccl_backend {
namespace {

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

  std::string why_alone() const override { return runtime_.nccl().why_alone(); }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    require_available(request);
    const NcclLibrary& nccl = runtime_.nccl();
    auto device = std::make_unique<GpuDevice>(runtime_.cuda(), choose_device(request));
    const std::string& boot_id = request.peers[static_cast<std::size_t>(request.rank)].boot_id;
    std::vector<int> ranks(static_cast<std::size_t>(request.size));
    std::iota(ranks.begin(), ranks.end(), 0);
    Meeting meeting(
        {.group = std::string(request.group),
         .store = make_prefix_store(request.store, "meeting"),
         .ranks = std::move(ranks),
         .place = static_cast<std::size_t>(request.rank),
         .advice = "give each rank its own: colrun --gpus-per-rank 1, or cudaSetDevice() before the group is made"});
    NcclMultiChannel::Place place{.group = std::string(request.group),
                                  .rank = request.rank,
                                  .size = request.size,
                                  .boot_id = boot_id,
                                  .store = request.store,
                                  .priority = request.is_high_priority_stream ? Priority::highest : Priority::normal};
    const Offer own{
        .devices = runtime_.cuda().devices, .why_alone = nccl.why_alone(), .seats = {seat_of(*device, boot_id)}};
    const Meeting::Table table = meeting.exchange(own, wait);
    for (const Offer& offer : table.offers) place.devices.push_back(offer.devices);
    const Membership membership{meeting.agree_on_id(nccl, wait), request.rank, request.size, table.has_shared_gpus};
    const GpuDevice::Scope scope(*device);
    auto communicator = std::make_unique<Communicator>(nccl, *device, membership);
    communicator->await_connection(wait);
    meeting.leave();
    return std::make_unique<NcclChannel>(std::move(place), std::move(device), std::move(communicator));
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

  const BackendModule::Environment environment_;
  mutable Runtime runtime_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory(BackendModule::Environment environment) {
  return std::make_unique<Factory>(std::move(environment));
}

}  // namespace col::nccl_backend

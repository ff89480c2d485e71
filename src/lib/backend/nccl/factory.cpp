// The NCCL backend: connects ranks that have one GPU each. It is a library of its own, in which libcol looks for
// col_backend_entry().
#include <charconv>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/build_id.hpp"
#include "backend/module.hpp"
#include "backend/nccl/channel.hpp"
#include "backend/nccl/device_memory.hpp"
#include "backend/nccl/meeting.hpp"

namespace col::nccl_backend {
namespace {

// Something that this machine may not have. Thread safe.
template <class T>
class Lazy {
 public:
  // `make` returns a unique_ptr<T>, or throws an Error that says why there is none. Every get() then throws this error.
  template <class Make>
  T& get(Make make) {
    std::call_once(once_, [&] {
      try {
        value_ = make();
      } catch (const Error& error) {
        why_not_ = error;
      }
    });
    if (why_not_) throw *why_not_;
    return *value_;
  }

 private:
  std::once_flag once_;  // guards what follows
  std::unique_ptr<T> value_;
  std::optional<Error> why_not_;
};

// CUDA and NCCL, looked up at the first request. Each function throws unavailable if the library is not found.
class Runtime {
 public:
  explicit Runtime(backend::Module::Environment environment) : environment_(std::move(environment)) {}

  const CudaDriver& cuda() {
    return cuda_.get([] { return std::make_unique<CudaDriver>(); });
  }
  const NcclLibrary& nccl() {
    return nccl_.get([this] { return std::make_unique<NcclLibrary>(environment_); });
  }
  DeviceMemory& memory() {
    return memory_.get([this] { return make_device_memory(cuda()); });
  }

 private:
  const backend::Module::Environment environment_;
  Lazy<CudaDriver> cuda_;
  Lazy<NcclLibrary> nccl_;
  Lazy<DeviceMemory> memory_;
};

class Factory final : public BackendFactory {
 public:
  explicit Factory(backend::Module::Environment environment) : environment_(environment), runtime_(environment) {}

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

  // Where there is no NCCL, none refuses two parts of one GPU.
  std::string seat(int device) override {
    const bool by_bus = !unavailable_reason() && !runtime_.nccl().tells_parts_apart();
    return by_bus ? device_memory().bus(device) : device_memory().uuid(device);
  }

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
    std::optional<Error> problem;  // told only now, as the others wait for what this rank brings
    try {
      require_form();
      place.settings = settings_of(request, nccl);
    } catch (const Error& error) {
      problem = Error(error.code(), error.message(), request.group, request.rank);
    }
    const std::string settings = place.settings.text();
    const Offer own{
        .terms = nccl.version_term() + (problem            ? "settings of NCCL that are in error"
                                        : settings.empty() ? "no settings of NCCL"
                                                           : fmt::format("the settings {} of NCCL", settings)),
        .devices = runtime_.cuda().devices,
        .why_alone = nccl.why_alone(),
        .seats = {seat_of(*device, boot_id, nccl)}};
    Meeting::Table table;
    try {
      table = meeting.exchange(
          own, [&] { return make_id(nccl); }, wait);
    } catch (const Error&) {
      if (problem) throw *problem;
      throw;
    }
    if (problem) throw *problem;
    for (const Offer& offer : table.offers) place.devices.push_back(offer.devices);
    place.has_shared_gpus = table.has_shared_gpus;
    const Membership membership{.id = table.id,
                                .rank = request.rank,
                                .size = request.size,
                                .has_shared_gpus = table.has_shared_gpus,
                                .name = std::string(request.group),
                                .settings = place.settings};
    const GpuDevice::Scope scope(*device);
    std::unique_ptr<Communicator> communicator;
    try {
      communicator =
          std::make_unique<Communicator>(nccl, *device, membership, Communicator::make_launcher(nccl, *device));
      communicator->on_wait([&meeting] { meeting.check(); });
      communicator->connect(wait);
      communicator->on_wait(nullptr);
    } catch (const Error& error) {
      // All have this deadline, and see an abort: each finds by itself for whom it has waited.
      if (error.code() != ErrorCode::timeout && error.code() != ErrorCode::aborted) meeting.give_up(error);
      throw;
    }
    meeting.leave(wait);
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

  void require_form() const {
    const std::string form = environment_("COL_NCCL_BLOCKING").value_or("off");
    if (form != "off" && form != "on")
      throw Error(ErrorCode::invalid_argument, fmt::format("COL_NCCL_BLOCKING is '{}'; it is off or on", form));
  }

  Settings settings_of(const ConnectRequest& request, const NcclLibrary& nccl) const {
    const std::string from_environment = environment_("COL_NCCL_SETTINGS").value_or("");
    Settings settings;
    try {
      settings = Settings::parse(from_environment, nccl.version);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("COL_NCCL_SETTINGS={}: {}", from_environment, error.message()));
    }
    settings.add(Settings::parse(request.settings, nccl.version));
    settings.require_consistent();
    return settings;
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

  const backend::Module::Environment environment_;
  mutable Runtime runtime_;
};

std::unique_ptr<BackendFactory> make_factory(backend::Module::Environment environment) {
  return std::make_unique<Factory>(std::move(environment));
}

}  // namespace
}  // namespace col::nccl_backend

extern "C" COL_EXPORT const col::backend::Module* col_backend_entry() {
  static constexpr col::backend::Module kModule{col::backend::kBuildId, col::nccl_backend::make_factory};
  return &kModule;
}

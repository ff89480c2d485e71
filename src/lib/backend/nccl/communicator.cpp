#include "backend/nccl/communicator.hpp"

#include <fmt/format.h>

namespace col::nccl_backend {
namespace {

// Blocks of threads of a kernel where GPUs are shared: a kernel that waits for one of another rank hangs when that
// finds no room on the device.
constexpr int kSharedCtas = 4;

// Older headers have no name in the configuration.
template <class Config>
void set_name(Config& config, const char* name) {
  if constexpr (requires { config.commName; }) config.commName = name;
}

}  // namespace

Communicator::Communicator(const NcclLibrary& nccl, const GpuDevice& device, const Membership& membership)
    : nccl_(nccl), device_(device), name_(std::make_shared<const std::string>(membership.name)) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  configure(config, membership);
  const GpuDevice::Scope scope(device_);
  const ncclResult_t result =
      nccl_.CommInitRankConfig(&comm_, membership.size, membership.id, membership.rank, &config);
  if (result == ncclSuccess || result == ncclInProgress) return;
  const Error error = error_of(result, "cannot connect the ranks");
  Communicator* const self = this;
  abort_all({&self, 1});
  throw error;
}

// The handle is written by a thread of NCCL's, at its end.
Communicator::Communicator(Communicator& parent, const GpuDevice& device, const Membership& membership, int color,
                           WaitContext& wait)
    : nccl_(parent.nccl_), device_(device), name_(std::make_shared<const std::string>(membership.name)) {
  struct Made {
    ncclComm_t comm = nullptr;
    std::shared_ptr<const std::string> name;  // shared: see name_
  };
  const auto made = std::make_shared<Made>();
  made->name = name_;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  configure(config, membership);
  const GpuDevice::Scope scope(device_);
  wait.describe("the ranks to split their communicator by NCCL");
  const bool joins = membership.size > 0;
  const ncclResult_t begun =
      nccl_.CommSplit(parent.comm_, joins ? color : NCCL_SPLIT_NOCOLOR, membership.rank, &made->comm, &config);
  parent.settle_job(begun, made, "cannot split the communicator", wait);
  comm_ = made->comm;
  if (comm_ == nullptr) return;
  connected_ = true;
  try {
    settle(ncclInProgress, "cannot connect the ranks", wait);
  } catch (...) {
    Communicator* const self = this;
    abort_all({&self, 1});
    throw;
  }
}

void Communicator::configure(ncclConfig_t& config, const Membership& membership) const {
  config.blocking = 0;
  if (!name_->empty()) set_name(config, name_->c_str());
  const Settings& settings = membership.settings;
  const bool is_told = nccl_.has_most_ctas || settings.has("min_ctas") || settings.has("max_ctas");
  if (membership.has_shared_gpus && !is_told) config.maxCTAs = kSharedCtas;
  settings.apply(config);
}

Communicator::~Communicator() {
  Communicator* const self = this;
  end_all({&self, 1});
}

void Communicator::await_connection(WaitContext& wait) {
  wait.describe("the ranks to connect by NCCL, over the interfaces that NCCL_SOCKET_IFNAME names or NCCL chooses");
  settle(ncclInProgress, "cannot connect the ranks", wait);
  connected_ = true;
}

ncclResult_t Communicator::state() const noexcept {
  ncclResult_t found = ncclSuccess;
  const ncclResult_t asked = nccl_.CommGetAsyncError(comm_, &found);
  return asked != ncclSuccess ? asked : found;
}

void Communicator::settle(ncclResult_t result, std::string_view doing, WaitContext& wait) {
  for (PollPause pause; result == ncclInProgress; result = state()) {
    pause(wait);
    if (look_) look_();
  }
  if (result != ncclSuccess) throw error_of(result, doing);
}

void Communicator::settle_job(ncclResult_t result, std::shared_ptr<const void> used, std::string_view doing,
                              WaitContext& wait) {
  used_ = std::move(used);
  settle(result == ncclSuccess ? ncclInProgress : result, doing, wait);
  used_.reset();
}

bool Communicator::is_busy() const {
  const ncclResult_t found = state();
  if (found != ncclSuccess && found != ncclInProgress) throw error_of(found, "the communicator broke");
  return found == ncclInProgress;
}

void Communicator::check() const {
  (void)is_busy();
}

Error Communicator::error_of(ncclResult_t result, std::string_view doing) const {
  const char* const last = nccl_.GetLastError(comm_);
  const std::string text = fmt::format("nccl: {}: {}{}", doing, nccl_.GetErrorString(result),
                                       last != nullptr && *last != '\0' ? fmt::format(" ({})", last) : "");
  switch (result) {
    case ncclRemoteError:
      return Error(ErrorCode::peer_lost, text + "; another rank died or left, look at its output first");
    case ncclSystemError:
    case ncclUnhandledCudaError:
      return Error(ErrorCode::io, text + "; NCCL_DEBUG=WARN says more");
    case ncclInvalidUsage:
      return Error(ErrorCode::unavailable, text + "; NCCL_DEBUG=WARN says more");
    default:
      return Error(ErrorCode::internal, text);
  }
}

}  // namespace col::nccl_backend

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

Communicator::Communicator(const NcclLibrary& nccl, const GpuDevice& device, const Membership& membership,
                           std::shared_ptr<Launcher> launcher)
    : nccl_(nccl),
      device_(device),
      launcher_(std::move(launcher)),
      made_(std::make_shared<Made>()),
      name_(std::make_shared<const std::string>(membership.name)) {
  made_->id = membership.id;
  made_->rank = membership.rank;
  made_->size = membership.size;
  made_->name = name_;
  configure(made_->config, membership);
}

std::shared_ptr<Launcher> Communicator::make_launcher(const NcclLibrary& nccl, const GpuDevice& device) {
  return nccl.is_blocking ? std::make_shared<Launcher>(device.cuda(), device.ordinal()) : nullptr;
}

void Communicator::configure(ncclConfig_t& config, const Membership& membership) const {
  config.blocking = launcher_ != nullptr ? 1 : 0;
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

void Communicator::connect(WaitContext& wait) {
  try {
    begin("cannot connect the ranks", connection());
    await_connection(wait);
  } catch (...) {
    Communicator* const self = this;
    abort_all({&self, 1});
    throw;
  }
}

// The handle is written at the end of the parent's call or of NCCL's thread, whether it is good or not.
void Communicator::split_from(Communicator& parent, int color, WaitContext& wait) {
  wait.describe("the ranks to split their communicator by NCCL");
  const bool joins = made_->size > 0;
  parent.give_job(
      "cannot split the communicator",
      [&nccl = nccl_, comm = parent.comm_, color = joins ? color : NCCL_SPLIT_NOCOLOR, made = made_] {
        return nccl.CommSplit(comm, color, made->rank, &made->comm, &made->config);
      },
      made_, wait);
  if (made_->comm == nullptr) return;
  note_begun("cannot connect the ranks");
  await_connection(wait);
}

// Where the parent has not come to its end, it may still be making this one.
void Communicator::abort_split(const Communicator& parent) noexcept {
  if (parent.is_left_ || parent.is_inside()) made_.reset();
  Communicator* const self = this;
  abort_all({&self, 1});
}

NcclCall Communicator::connection() const {
  auto device = std::make_shared<const GpuDevice>(device_.cuda(), device_.ordinal());  // shared: NcclCall is copied
  return [&nccl = nccl_, made = made_, device = std::move(device)] {
    const GpuDevice::Scope scope(*device);
    return nccl.CommInitRankConfig(&made->comm, made->size, made->id, made->rank, &made->config);
  };
}

// In the non-blocking form it is there at once, and asked whether it is connected.
void Communicator::take_handle() noexcept {
  if (made_ != nullptr && !is_inside()) comm_ = made_->comm;
}

void Communicator::await_connection(WaitContext& wait) {
  wait.describe("the ranks to connect by NCCL, over the interfaces that NCCL_SOCKET_IFNAME names or NCCL chooses");
  settle(wait);
  take_handle();
  made_.reset();
  connected_ = true;
}

ncclResult_t Communicator::state() const noexcept {
  ncclResult_t found = ncclSuccess;
  const ncclResult_t asked = nccl_.CommGetAsyncError(comm_, &found);
  return asked != ncclSuccess ? asked : found;
}

bool Communicator::is_taking() {
  if (is_handed_over_) {
    if (is_inside()) return true;
    is_handed_over_ = false;
    result_ = launcher_->result();
  }
  if (result_ == ncclInProgress) result_ = state();
  return result_ == ncclInProgress;
}

void Communicator::throw_if_refused() const {
  if (result_ != ncclSuccess && result_ != ncclInProgress) throw error_of(result_, doing_);
}

void Communicator::settle(WaitContext& wait) {
  if (is_handed_over_) launcher_->await_briefly();
  for (PollPause pause; is_taking();) {
    if (rest_ && is_inside())
      rest_([&] { pause(wait); });
    else
      pause(wait);
    if (look_) look_();
  }
  throw_if_refused();
}

void Communicator::give_job(std::string_view doing, NcclCall call, std::shared_ptr<const void> used,
                            WaitContext& wait) {
  used_ = std::move(used);
  begin(doing, std::move(call));
  if (launcher_ == nullptr && result_ == ncclSuccess) result_ = ncclInProgress;
  settle(wait);
  used_.reset();
}

void Communicator::note_begun(std::string_view doing) {
  doing_ = doing;
  take_handle();
  result_ = launcher_ == nullptr ? ncclInProgress : ncclSuccess;
}

bool Communicator::is_busy() {
  if (is_taking()) return true;
  throw_if_refused();
  const ncclResult_t found = state();
  if (found != ncclSuccess && found != ncclInProgress) throw error_of(found, "the communicator broke");
  return found == ncclInProgress;
}

void Communicator::check() const {
  if (comm_ == nullptr) return;
  const ncclResult_t found = state();
  if (found != ncclSuccess && found != ncclInProgress) throw error_of(found, "the communicator broke");
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

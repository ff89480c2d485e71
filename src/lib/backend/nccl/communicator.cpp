#include "backend/nccl/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/left_behind.hpp"

namespace col::nccl_backend {
namespace {

// How long the last rank to destroy a group may take: beyond that, the others have gone for a reason.
constexpr Duration kFarewell = std::chrono::seconds(2);
// How long what runs on the GPUs of this rank may take to see that it was revoked: the other ranks learn of an error
// after that.
constexpr Duration kRevocation = std::chrono::milliseconds(500);

// Blocks of threads of a kernel where GPUs are shared: a kernel that waits for one of another rank hangs when that
// finds no room on the device.
constexpr int kSharedCtas = 4;
constexpr int kDefaultRevoke = 0;  // as ncclCommRevoke() calls its flags
constexpr int kDefaultWindow = 0;  // as ncclCommWindowRegister() does

// Older headers have no name in the configuration.
template <class Config>
void set_name(Config& config, const char* name) {
  if constexpr (requires { config.commName; }) config.commName = name;
}

using All = std::span<Communicator* const>;

// Calls `each` for all as one group, in which NCCL lets none wait for the others.
template <class Each>
void together(All all, Each each) noexcept {
  if (std::all_of(all.begin(), all.end(), [](const Communicator* one) { return one->get() == nullptr; })) return;
  const NcclLibrary& nccl = all.front()->nccl();
  const bool grouped = nccl.GroupStart() == ncclSuccess;
  for (Communicator* const communicator : all) each(*communicator);
  if (grouped) nccl.GroupEnd();
}

// Runs `body` in a thread of its own, and waits for its end; in this one if there can be no other. False: it goes on.
bool ends_within(Duration limit, const std::function<void()>& body) {
  std::packaged_task<void()> task(body);
  const std::future<void> end = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    body();
    return true;
  }
  return end.wait_for(limit) == std::future_status::ready;
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
  wait.describe("the ranks to connect by NCCL");
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

// ---- The end

// Where the device cannot be made current any more, NCCL is called all the same: it finds the device itself.
template <class Call>
void Communicator::on_device(Call call) noexcept {
  std::optional<GpuDevice::Scope> scope;
  try {
    scope.emplace(device_);
  } catch (const std::exception&) {
  }
  call();
}

void Communicator::begin_end() noexcept {
  connected_ = false;
  if (comm_ != nullptr) on_device([this] { ending_ = nccl_.CommFinalize(comm_); });
}

// What cannot be revoked is aborted.
void Communicator::begin_revoke() noexcept {
  ending_ = ncclInvalidUsage;
  if (comm_ == nullptr || !connected_) return;
  connected_ = false;
  on_device([this] { ending_ = nccl_.CommRevoke(comm_, kDefaultRevoke); });
}

void Communicator::await_end(WaitContext& wait) noexcept {
  if (comm_ == nullptr) return;
  try {
    look_ = nullptr;
    // In a group, it succeeds before it has begun.
    settle(ending_ == ncclSuccess ? ncclInProgress : ending_, "cannot end the communicator", wait);
    ended_ = true;
  } catch (const std::exception&) {  // nobody is told: the group has ended
  }
}

// With what NCCL has pointers to.
void Communicator::leave() noexcept {
  comm_ = nullptr;
  is_left_ = true;
  leave_content_behind(name_);
  leave_content_behind(used_);
}

// NCCL's last call for each of them. It may wait without end: for graphs that are still there, and for a GPU that does
// not answer. So a thread makes it, which owns what the call needs, and goes on with it if it takes long.
void finish(All some, Communicator::Last call) noexcept {
  struct Part {
    ncclComm_t comm;
    std::unique_ptr<GpuDevice> device;             // a reference of its own; null if it cannot be had any more
    std::shared_ptr<const void> used = {};         // shared: see Communicator::used_
    std::shared_ptr<const std::string> name = {};  // shared: see Communicator::name_
  };
  std::vector<Communicator*> finished;
  auto parts = std::make_shared<std::vector<Part>>();  // shared: with the thread, which may outlast this call
  for (Communicator* const communicator : some) {
    if (communicator->comm_ == nullptr) continue;
    Part& part = parts->emplace_back(Part{std::exchange(communicator->comm_, nullptr), nullptr});
    part.used = std::move(communicator->used_);
    part.name = communicator->name_;
    try {
      part.device = std::make_unique<GpuDevice>(communicator->device_.cuda(), communicator->device_.ordinal());
    } catch (const std::exception&) {  // NCCL finds the device by itself
    }
    finished.push_back(communicator);
  }
  if (finished.empty()) return;
  const NcclLibrary& nccl = finished.front()->nccl_;
  const bool ended = ends_within(kFarewell, [&nccl, call, parts] {
    const bool grouped = parts->size() > 1 && nccl.GroupStart() == ncclSuccess;
    for (const Part& part : *parts) {
      std::optional<GpuDevice::Scope> scope;
      try {
        if (part.device) scope.emplace(*part.device);
      } catch (const std::exception&) {
      }
      (nccl.*call)(part.comm);
    }
    if (grouped) nccl.GroupEnd();
    parts->clear();
  });
  for (Communicator* const communicator : finished) communicator->is_left_ = !ended;
}

// Of those that have ended. Each by itself: only what has not ended waits for others.
void destroy_all(All all) noexcept {
  for (Communicator* const communicator : all) {
    if (communicator->ended_) finish({&communicator, 1}, &NcclLibrary::CommDestroy);
  }
}

bool end_all(All all, const Communicator* spared) noexcept {
  together(all, [](Communicator& communicator) { communicator.begin_end(); });
  WaitContext wait(Deadline::after(kFarewell));
  for (Communicator* const communicator : all) communicator->await_end(wait);
  destroy_all(all);
  for (Communicator* const communicator : all) {
    if (communicator == spared && communicator->comm_ != nullptr) communicator->leave();
  }
  abort_all(all);
  return std::none_of(all.begin(), all.end(), [](const Communicator* one) { return one->is_left_; });
}

// Each is revoked in the background, and so none of them waits for the next.
void revoke_all(All all) noexcept {
  if (all.empty() || all.front()->nccl().CommRevoke == nullptr) return;
  WaitContext wait(Deadline::after(kRevocation));
  for (Communicator* const communicator : all) communicator->begin_revoke();
  for (Communicator* const communicator : all) communicator->await_end(wait);
  // NCCL would free what has been revoked without a look at its graphs, which read from it when they are destroyed.
  for (Communicator* const communicator : all) {
    if (communicator->comm_ == nullptr || !communicator->ended_ || !communicator->has_graphs_) continue;
    communicator->leave();
  }
  destroy_all(all);
}

void abort_all(All all) noexcept {
  revoke_all(all);
  finish(all, &NcclLibrary::CommAbort);
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

// ---- Memory

WindowMemory::WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes)
    : nccl_(nccl), device_(std::make_shared<const GpuDevice>(cuda, ordinal)), bytes_(std::max<std::size_t>(bytes, 1)) {
  const GpuDevice::Scope scope(*device_);
  const BesideCaptures beside(cuda);
  const ncclResult_t result = nccl_.MemAlloc(&memory_, bytes_);
  if (result == ncclSuccess) return;
  throw Error(ErrorCode::resource, fmt::format("nccl: cannot allocate {} bytes of GPU {}: {}", bytes, ordinal,
                                               nccl_.GetErrorString(result)));
}

WindowMemory::~WindowMemory() {
  try {
    const GpuDevice::Scope scope(*device_);
    const BesideCaptures beside(device_->cuda());
    deregister();
    if (memory_ == nullptr) return;
    // It may wait for all work on the GPU, which may wait for ranks that never come.
    ends_within(kFarewell, [&nccl = nccl_, device = device_, memory = memory_] {
      try {
        const GpuDevice::Scope own(*device);
        const BesideCaptures own_beside(device->cuda());
        nccl.MemFree(memory);
      } catch (const std::exception&) {
      }
    });
  } catch (const std::exception&) {  // the driver is shutting down, and takes it back
  }
}

void WindowMemory::make_window(const std::shared_ptr<WindowMemory>& memory, Communicator& communicator,
                               WaitContext& wait) {
  const NcclLibrary& nccl = communicator.nccl();
  if (nccl.CommWindowRegister == nullptr) return;
  const std::lock_guard lock(memory->mutex_);
  wait.describe("the ranks to register memory with NCCL");
  const ncclResult_t begun =
      nccl.CommWindowRegister(communicator.get(), memory->memory_, memory->bytes_, &memory->window_, kDefaultWindow);
  communicator.settle_job(begun, memory, "cannot register memory", wait);
  memory->communicator_ = &communicator;
}

void WindowMemory::deregister() noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr && communicator_->get() != nullptr)
    nccl_.CommWindowDeregister(communicator_->get(), window_);
  communicator_ = nullptr;
}

}  // namespace col::nccl_backend

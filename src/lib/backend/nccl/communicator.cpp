#include "backend/nccl/communicator.hpp"

#include <chrono>

#include <fmt/format.h>

#include "backend/nccl/poll_pause.hpp"

namespace col::nccl_backend {
namespace {

// How long the last rank to destroy a group may take: beyond that, the others have gone for a reason.
constexpr Duration kFarewell = std::chrono::seconds(2);

}  // namespace

Communicator::Communicator(const NcclLibrary& nccl, const ncclUniqueId& id, int rank, int size, WaitContext& wait)
    : nccl_(nccl) {
  try {
    connect(id, rank, size, wait);
  } catch (...) {
    abort();
    throw;
  }
}

Communicator::~Communicator() {
  if (comm_ == nullptr) return;
  try {
    WaitContext wait(Deadline::after(kFarewell));
    settle(nccl_.CommFinalize(comm_), "cannot end the communicator", wait);
    nccl_.CommDestroy(comm_);
  } catch (const std::exception&) {  // nobody is told: the group has ended
    abort();
  }
}

void Communicator::connect(const ncclUniqueId& id, int rank, int size, WaitContext& wait) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  wait.describe("the ranks to connect by NCCL");
  settle(nccl_.CommInitRankConfig(&comm_, size, id, rank, &config), "cannot connect the ranks", wait);
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

bool Communicator::is_busy() const {
  const ncclResult_t found = state();
  if (found != ncclSuccess && found != ncclInProgress) throw error_of(found, "the communicator broke");
  return found == ncclInProgress;
}

void Communicator::check() const {
  (void)is_busy();
}

void Communicator::abort() noexcept {
  if (comm_ != nullptr) nccl_.CommAbort(comm_);
  comm_ = nullptr;
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

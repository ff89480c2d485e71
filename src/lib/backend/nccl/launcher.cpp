#include "backend/nccl/launcher.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {
namespace {

// How often the thread looks for its next call before it sleeps: calls come one after another, and to be woken takes as
// long as NCCL takes for a small one.
constexpr int kEagerLooks = 2000;
// One that nobody wakes would notice so late; there is no such case.
constexpr Duration kNap = std::chrono::seconds(10);

}  // namespace

struct Launcher::Shared {
  Shared(const CudaDriver& cuda, int ordinal) : device(cuda, ordinal) {}

  const GpuDevice device;             // a reference of the thread's own
  NcclCall call;                      // written before `asked`; the thread's until `done`
  ncclResult_t result = ncclSuccess;  // written before `done`
  // Calls that were handed over, and those that have come back. seq_cst, with `sleeps`: who asks and finds that the
  // thread does not sleep is seen by it before it does.
  std::atomic<std::uint32_t> asked{0}, done{0};
  std::atomic<bool> sleeps{false}, ends{false};
  std::vector<std::function<void()>> last;  // written before `ends`

  void ask() {
    asked.fetch_add(1);
    if (sleeps.load()) core::wake_word(asked);
  }
  void await(std::uint32_t seen) {
    for (int look = 0; look < kEagerLooks; ++look) {
      if (asked.load(std::memory_order_acquire) != seen) return;
    }
    sleeps.store(true);
    while (asked.load() == seen) core::wait_on_word(asked, seen, kNap);
    sleeps.store(false);
  }
};

Launcher::Launcher(const CudaDriver& cuda, int ordinal) : shared_(std::make_shared<Shared>(cuda, ordinal)) {
  try {
    thread_ = core::Thread([shared = shared_] { run(*shared); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource, fmt::format("nccl: there can be no thread for NCCL's calls: {}", error.what()));
  }
}

Launcher::~Launcher() {
  const bool is_back = is_free();
  shared_->ends = true;
  shared_->ask();
  if (is_back)
    thread_.join();
  else
    thread_.detach();
}

void Launcher::run(Shared& shared) {
  const BesideCaptures beside(shared.device.cuda());
  std::optional<GpuDevice::Scope> scope;
  try {
    scope.emplace(shared.device);
  } catch (const std::exception&) {  // NCCL says so at its first call
  }
  for (std::uint32_t seen = 0;; ++seen) {
    shared.await(seen);
    if (shared.ends) break;
    shared.result = shared.call();
    shared.call = nullptr;  // what it owns has gone when it is known to have ended
    shared.done.store(seen + 1, std::memory_order_release);
  }
  for (const auto& last : shared.last) last();
  shared.last.clear();
}

void Launcher::begin(NcclCall call) {
  shared_->call = std::move(call);
  shared_->ask();
}

bool Launcher::is_free() const noexcept {
  return shared_->done.load(std::memory_order_acquire) == shared_->asked.load(std::memory_order_relaxed);
}

void Launcher::at_end(std::function<void()> last) {
  shared_->last.push_back(std::move(last));
}

void Launcher::await_briefly() const noexcept {
  for (int look = 0; look < kEagerLooks && !is_free(); ++look) {
  }
}

ncclResult_t Launcher::result() const noexcept {
  return shared_->result;
}

std::size_t Launcher::hand_overs() const noexcept {
  return shared_->asked.load(std::memory_order_relaxed);
}

}  // namespace col::nccl_backend

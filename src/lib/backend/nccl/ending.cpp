// How communicators end: in good order, revoked, aborted, or left to themselves.
#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/left_behind.hpp"
#include "backend/nccl/own_thread.hpp"

namespace col::nccl_backend {
namespace {

// How long an end in good order waits for the other ranks to destroy the group, too. If they take longer, they have
// failed.
constexpr Duration kFarewell = std::chrono::seconds(2);
// How long NCCL may take to revoke what runs on the GPUs of this rank, all in all. NCCL waits for its own threads,
// which look every half second whether they should end. The other ranks hear of an error only after the revoke.
constexpr Duration kRevocation = std::chrono::seconds(3);

constexpr int kDefaultRevoke = 0;  // as ncclCommRevoke() calls its flags

using All = std::span<Communicator* const>;

// True if all work of the GPU ends before the deadline of `wait`; also true if the driver cannot tell.
bool comes_to_rest(const GpuDevice& device, WaitContext& wait) noexcept {
  try {
    const GpuDevice::Scope scope(device);
    GpuEvent rest(device.cuda());
    rest.record_all(device);
    for (PollPause pause; !rest.done();) pause(wait);
  } catch (const Error& error) {
    return error.code() != ErrorCode::timeout;
  } catch (const std::exception&) {
  }
  return true;
}

}  // namespace

// The parts of a communicator that a thread needs to end it. That thread may outlive the Communicator: NCCL's calls may
// wait for ever, for graphs that still exist, and for a GPU that does not answer.
struct Communicator::Part {
  explicit Part(Communicator& of) : comm(of.comm_), used(of.used_), name(of.name_) {
    try {
      device = std::make_unique<GpuDevice>(of.device_.cuda(), of.device_.ordinal());
    } catch (const std::exception&) {  // NCCL finds the device by itself
    }
  }

  template <class Call>
  void make(Call call) {
    std::optional<GpuDevice::Scope> scope;
    try {
      if (device) scope.emplace(*device);
    } catch (const std::exception&) {
    }
    result = call(comm);
  }

  ncclComm_t comm;
  std::unique_ptr<GpuDevice> device;        // a reference of its own; null if the driver gives none any more
  std::shared_ptr<const void> used;         // shared: see Communicator::used_
  std::shared_ptr<const std::string> name;  // shared: see Communicator::name_
  ncclResult_t result = ncclSuccess;
};

// One of NCCL's calls that end communicators, made for several of them as one NCCL group, so that none waits for the
// others. A thread of its own makes the call, and keeps the parts that it needs if it takes long.
class Communicator::Call {
 public:
  template <class Function>
  Call(All all, Function function) : communicators_(all.begin(), all.end()) {
    if (communicators_.empty()) return;
    for (Communicator* const communicator : communicators_) parts_->emplace_back(*communicator);
    end_ = run_in_own_thread([&nccl = communicators_.front()->nccl_, function, parts = parts_] {
      const bool grouped = parts->size() > 1 && nccl.GroupStart() == ncclSuccess;
      for (Part& part : *parts) part.make([&](ncclComm_t comm) { return function(nccl, comm); });
      if (grouped) nccl.GroupEnd();
      for (Part& part : *parts) part.device.reset();
    });
  }

  const std::vector<Communicator*>& communicators() const { return communicators_; }
  // Waits for the end of the call. False: it goes on.
  bool ends_within(Duration limit) {
    if (communicators_.empty()) return true;
    if (end_.wait_for(limit) != std::future_status::ready) return false;
    for (std::size_t i = 0; i < communicators_.size(); ++i) communicators_[i]->ending_ = (*parts_)[i].result;
    return true;
  }

 private:
  const std::vector<Communicator*> communicators_;
  const std::shared_ptr<std::vector<Part>> parts_ = std::make_shared<std::vector<Part>>();  // shared: with the thread
  std::future<void> end_;
};

// In the blocking form, a finalize waits for graphs, and a revoke or an abort cannot begin meanwhile. So a communicator
// with graphs is not finalized if its GPU does not come to rest: a graph may wait there for a rank that has failed.
std::vector<Communicator*> Communicator::begin_end(All all, WaitContext& wait) noexcept {
  std::vector<Communicator*> some;
  for (Communicator* const one : all) {
    if (one->is_inside()) continue;
    const bool may_hang = one->launcher_ != nullptr && one->has_graphs_ && one->comm_ != nullptr;
    if (may_hang && !comes_to_rest(one->device_, wait)) continue;
    one->take_handle();
    one->connected_ = false;
    if (one->comm_ != nullptr) some.push_back(one);
  }
  Call finalize(some, [](const NcclLibrary& nccl, ncclComm_t comm) { return nccl.CommFinalize(comm); });
  const bool returned = finalize.ends_within(kFarewell);
  for (Communicator* const one : some) {
    if (!returned) one->leave();
  }
  return some;
}

// Leaves out communicators that are not connected: those are aborted.
std::vector<Communicator*> Communicator::begin_revoke(All all, const Deadline& until) noexcept {
  std::vector<Communicator*> some;
  for (Communicator* const one : all) {
    if (one->comm_ != nullptr && std::exchange(one->connected_, false)) some.push_back(one);
  }
  // Each in its own call, as NCCL does not revoke in groups; all at the same time, as one may take all of the time.
  std::vector<std::unique_ptr<Call>> calls;
  for (Communicator* const one : some) {
    calls.push_back(std::make_unique<Call>(
        All(&one, 1), [](const NcclLibrary& nccl, ncclComm_t comm) { return nccl.CommRevoke(comm, kDefaultRevoke); }));
  }
  for (const auto& call : calls) {
    if (!call->ends_within(until.remaining())) call->communicators().front()->leave();
  }
  return some;
}

void Communicator::await_end(WaitContext& wait) noexcept {
  if (comm_ == nullptr) return;
  try {
    // In an NCCL group, the call reports success before it has begun. In the blocking form, the call has been made, and
    // a thread that was inside NCCL comes out.
    if (launcher_ == nullptr && ending_ == ncclSuccess) ending_ = ncclInProgress;
    for (PollPause pause; is_inside() || ending_ == ncclInProgress; pause(wait)) {
      if (ending_ == ncclInProgress) ending_ = state();
    }
    ended_ = ending_ == ncclSuccess;
  } catch (const std::exception&) {  // nobody needs to hear it: the group has ended
  }
}

// Leaves the communicator to itself, with the memory that NCCL has pointers to. If a thread is inside NCCL, it aborts
// the communicator when it comes out: nobody else uses it then.
void Communicator::leave() noexcept {
  if (is_inside() && !has_graphs_) leave_to_thread(made_);
  comm_ = nullptr;
  made_.reset();
  is_left_ = true;
  leave_content_behind(name_);
  leave_content_behind(used_);
}

void Communicator::leave_to_thread(const std::shared_ptr<Made>& made) noexcept {
  try {
    launcher_->at_end([&nccl = nccl_, comm = comm_, made] {
      const ncclComm_t left = comm != nullptr || made == nullptr ? comm : made->comm;
      if (left != nullptr) nccl.CommAbort(left);
    });
  } catch (const std::exception&) {  // no memory: it stays
  }
}

// Makes NCCL's last call for each of them, except where a thread is still inside: the call would free memory that it
// uses.
void finish(All all, Communicator::Last last) noexcept {
  std::vector<Communicator*> some;
  for (Communicator* const one : all) {
    one->take_handle();
    if (one->is_inside()) one->leave();
    if (one->comm_ != nullptr) some.push_back(one);
  }
  Communicator::Call call(some, [last](const NcclLibrary& nccl, ncclComm_t comm) { return (nccl.*last)(comm); });
  const bool ended = call.ends_within(kFarewell);
  for (Communicator* const one : some) {
    one->comm_ = nullptr;
    one->made_.reset();
    one->used_.reset();  // the thread that makes the call has it, too
    one->is_left_ = !ended;
  }
}

// Destroys those that have ended, one by one: a communicator that has ended does not wait for others.
void destroy_all(All all) noexcept {
  for (Communicator* const communicator : all) {
    if (communicator->ended_) finish({&communicator, 1}, &NcclLibrary::CommDestroy);
  }
}

bool end_all(All all, const Communicator* spared) noexcept {
  WaitContext wait(Deadline::after(kFarewell));
  for (Communicator* const communicator : Communicator::begin_end(all, wait)) communicator->await_end(wait);
  destroy_all(all);
  for (Communicator* const communicator : all) {
    if (communicator == spared && communicator->comm_ != nullptr) communicator->leave();
  }
  abort_all(all);
  return std::none_of(all.begin(), all.end(), [](const Communicator* one) { return one->is_left_; });
}

// Each is revoked in the background, so none waits for the next. Once NCCL has accepted a revoke, a later abort or
// destroy frees the communicator without looking at its graphs. These read from it when the program destroys them, so a
// communicator with graphs is left to itself.
void revoke_all(All all) noexcept {
  if (all.empty() || all.front()->nccl().CommRevoke == nullptr) return;
  const Deadline until = Deadline::after(kRevocation);
  WaitContext wait(until);
  for (Communicator* const communicator : Communicator::begin_revoke(all, until)) {
    const bool is_accepted = communicator->ending_ == ncclSuccess || communicator->ending_ == ncclInProgress;
    communicator->await_end(wait);
    if (communicator->has_graphs_ && is_accepted && communicator->comm_ != nullptr) communicator->leave();
  }
  destroy_all(all);
}

void abort_all(All all) noexcept {
  revoke_all(all);
  finish(all, &NcclLibrary::CommAbort);
}

}  // namespace col::nccl_backend

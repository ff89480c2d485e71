#include "backend/nccl/channel.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/gpu_end.hpp"
#include "backend/nccl/left_behind.hpp"
#include "backend/nccl/own_thread.hpp"
#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

// How long the end of a channel waits for NCCL to let go of memory.
constexpr Duration kDeregistration = std::chrono::seconds(2);

// is_default_open() for the context that is current, which mostly is the group's device's, with one call of the driver:
// every call of a group asks. Where it is that of another device, a capture may be missed, and the driver refuses the
// work.
bool is_current_default_open(const CudaDriver& cuda) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuda.StreamIsCapturing(CU_STREAM_LEGACY, &status) == CUDA_SUCCESS;
}

}  // namespace

NcclChannel::NcclChannel(NcclMultiChannel::Place place, std::unique_ptr<GpuDevice> device,
                         std::unique_ptr<Communicator> communicator, std::shared_ptr<backend::FirstCause> cause)
    : Channel({.device = this, .allocation = this, .holding = this}),
      cause_(std::move(cause)),
      group_(place.group),
      rank_(place.rank),
      size_(place.size),
      pid_(::getpid()),
      device_(std::move(device)),
      communicator_(std::move(communicator)),
      native_(*communicator_, *device_, rank_, size_) {
  const GpuDevice::Scope scope(*device_);
  stream_ = std::make_unique<GpuStream>(device_->cuda(), place.priority);
  before_ = std::make_unique<GpuEvent>(device_->cuda());
  const Communicator::Rest rest = [this](const std::function<void()>& pause) { use_->lend(pause); };
  communicator_->on_wait([this] { throw_if_broken(); }, rest);
  NcclMultiChannel::Host host{
      .guarded = [this](std::string_view call, const std::function<void()>& body) { run_guarded(call, body); },
      .look = [this] { throw_if_broken(); },
      .rest = rest};
  multi_ = std::make_unique<NcclMultiChannel>(*device_, communicator_->nccl(), std::move(place), std::move(host));
  use_->communicator = communicator_.get();
  use_->abort = [this] { abort_communicators(); };
}

NcclChannel::~NcclChannel() {
  if (::getpid() != pid_) {  // neither CUDA nor NCCL survives a fork
    forget();
    return;
  }
  const std::lock_guard use(use_->mutex);
  use_->abort = nullptr;
  try {
    const GpuDevice::Scope scope(*device_);
    posts_.clear();
    if (communicator_->is_inside()) {  // messages that wait for a peer; those that share connections end with it
      cause_->set(Error(ErrorCode::aborted, "a group was ended while NCCL waited for a peer", group_, rank_));
      abort_all(communicators());
    }
    const bool deregistered = deregister();
    use_->communicator = nullptr;
    if (!deregistered) {
      forget();
      return;
    }
    // NCCL would end the work of the others without a word. If they all have an error, they know.
    const bool is_shared = cause_.use_count() > 1 && !cause_->is_set();
    const bool ended = end_all(communicators(), is_shared ? communicator_.get() : nullptr);
    multi_.reset();
    communicator_.reset();
    if (!ended) {  // the device may never come to an end, or a graph run again
      forget();
      return;
    }
    native_.release();  // waits for the device, on which nothing of the communicator runs any more
    idle_.clear();
    before_.reset();
    stream_.reset();
  } catch (const std::exception&) {  // the driver is shutting down, and takes back everything itself
    forget();
  }
}

// NCCL's calls may wait. False: they go on, and use the communicator.
bool NcclChannel::deregister() {
  std::vector<std::shared_ptr<WindowMemory>> windows;
  for (const auto& window : windows_) {
    if (auto memory = window.lock()) windows.push_back(std::move(memory));
  }
  if (windows.empty() && registrations_.empty()) return true;
  return ends_within(kDeregistration, [device = device_, windows = std::move(windows), registrations = registrations_,
                                       &communicator = *communicator_] {
    try {
      const GpuDevice::Scope scope(*device);
      for (const auto& memory : windows) memory->deregister(communicator);
      for (const auto& registration : registrations) registration->deregister(communicator);
    } catch (const std::exception&) {  // as in the destructor
    }
  });
}

// Leaves everything to the end of the process.
void NcclChannel::forget() noexcept {
  leave_content_behind(posts_);
  leave_content_behind(idle_);
  native_.forget();
  leave_behind(multi_);
  leave_behind(before_);
  leave_behind(communicator_);
  leave_behind(stream_);
  leave_content_behind(device_);
}

// Of this rank's GPU, and of all that calls over several GPUs have connected.
std::vector<Communicator*> NcclChannel::communicators() const {
  std::vector<Communicator*> all = multi_->communicators();
  all.push_back(communicator_.get());
  return all;
}

void NcclChannel::fail(const Error& error) {
  cause_->set(error);
  abort_all(communicators());
  throw error;
}

// Runs `body` as the only thread inside NCCL. Whatever it throws breaks the channel.
template <class Body>
auto NcclChannel::guarded(const char* call, Body body, Current context) {
  cause_->check(call, group_);
  const NcclUse::Inside inside(*use_);
  cause_->check(call, group_);  // again: it may have been aborted meanwhile
  std::optional<GpuDevice::Scope> scope;
  if (context == Current::made) scope.emplace(*device_);
  try {
    return body();
  } catch (const Error& error) {
    fail(Error(error.code(), error.message(), group_, error.rank(), error.world_rank(), error.is_loss()));
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::resource, "nccl: out of memory", group_, rank_));
  }
}

void NcclChannel::run_guarded(std::string_view call, const std::function<void()>& body) {
  guarded(std::string(call).c_str(), [&] { body(); });
}

void NcclChannel::abort(const Error& cause) noexcept {
  cause_->set(cause);
  use_->break_channel();
}

// Requires: this thread is the one inside NCCL.
void NcclChannel::abort_communicators() noexcept {
  try {
    const GpuDevice::Scope scope(*device_);
    abort_all(communicators());
  } catch (const std::exception&) {
  }
}

template <class Queued>
void NcclChannel::wait_for(const Queued& queued, WaitContext& wait) {
  const BesideCaptures beside(device_->cuda());
  for (PollPause pause; !queued.done(beside); pause(wait)) {
    communicator_->check();
    throw_if_broken();
  }
  throw_if_broken();  // what was aborted ends like what has ended
}

void NcclChannel::throw_if_broken() const {
  if (!cause_->is_set()) return;
  const Error cause = cause_->get();
  throw Error(cause.code(), cause.message(), group_, cause.rank(), cause.world_rank(), cause.is_loss());
}

// ---- Collectives

// The caller's, whose work comes before; else ours, after what the default stream of the device has been given so far.
CUstream NcclChannel::stream_of(const Request& request) {
  if (request.stream.handle != nullptr) return static_cast<CUstream>(request.stream.handle);
  put_after(CU_STREAM_LEGACY);
  return stream_->get();
}

// What comes next in the channel's own stream comes after what `other` holds.
void NcclChannel::put_after(CUstream other) {
  before_->record(other);
  before_->hold_up(stream_->get());
}

// An event at the end of what the stream has been given so far.
std::shared_ptr<GpuEvent> NcclChannel::record(CUstream stream) {
  if (idle_.empty()) idle_.push_back(make_shared_event(device_));
  std::shared_ptr<GpuEvent> event = std::move(idle_.back());
  idle_.pop_back();
  event->record(stream);
  return event;
}

void NcclChannel::check(const Request& request) const {
  const char* const call = to_string(request.collective).data();
  check_memory(call, request.in);
  if (request.in.data != request.out.data || request.in.bytes() != request.out.bytes()) check_memory(call, request.out);
  try {
    require_usable(request.stream);
    if (is_default(request.stream) && !is_current_default_open(device_->cuda())) require_default_open(*device_);
    native_.check(request);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", call, error.message()), group_, rank_);
  }
  if (native_.needs_scratch(request) && request.is_captured)
    throw Error(
        ErrorCode::unavailable,
        fmt::format("this {} needs memory of its own, which a graph cannot get; call it outside of the capture, "
                    "or, what is only in place (alltoall), with separate buffers",
                    call),
        group_, rank_);
}

bool NcclChannel::is_captured(Stream stream) const {
  try {
    return nccl_backend::is_captured(stream, *device_);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), group_, rank_);
  }
}

Ticket NcclChannel::start_native(const Request& request, WaitContext& wait) {
  return guarded(to_string(request.collective).data(), [&] {
    start_posts(wait);  // they were called before
    Post started{.peer = rank_, .recorded = request.is_captured, .stream = stream_of(request)};
    if (started.recorded) communicator_->note_graph();  // even if the call then fails
    native_.run(request, started.stream, wait);
    if (!started.recorded) started.ended = record(started.stream);
    posts_.emplace(next_post_, std::move(started));
    return Ticket{next_post_++};
  });
}

// As start_native() and wait(), with less asked of the driver. In the channel's own stream, which gets nothing more
// meanwhile, no event is needed for the end. And where the default stream takes the event before it, its context is
// current.
void NcclChannel::native(const Request& request, WaitContext& wait) {
  guarded(
      to_string(request.collective).data(),
      [&] {
        const bool is_own = request.stream.handle == nullptr;
        std::optional<GpuDevice::Scope> scope;
        if (!is_own || !starting_.empty() || !waiting_.empty() || !before_->record_default()) {
          scope.emplace(*device_);
          start_posts(wait);  // they were called before
          if (is_own) before_->record(CU_STREAM_LEGACY);
        }
        if (is_own) before_->hold_up(stream_->get());
        if (request.is_captured) communicator_->note_graph();  // even if the call then fails
        native_.run(request, is_own ? stream_->get() : static_cast<CUstream>(request.stream.handle), wait);
        if (request.is_captured) return;
        wait.describe("the GPU");
        if (is_own) return wait_for(*stream_, wait);
        std::shared_ptr<GpuEvent> ended = record(static_cast<CUstream>(request.stream.handle));
        wait_for(*ended, wait);
        idle_.push_back(std::move(ended));
      },
      Current::by_itself);
}

// A captured call has an event only where somebody asks: right after it has started, so that nothing else is before it.
std::shared_ptr<const DeviceEnd> NcclChannel::end_of(Ticket ticket, WaitContext& wait) {
  return guarded("wait", [&]() -> std::shared_ptr<const DeviceEnd> {
    start_posts(wait);
    const auto found = posts_.find(ticket.id);
    if (found == posts_.end()) throw Error(ErrorCode::invalid_argument, "wait: the ticket is not in use");
    Post& post = found->second;
    if (post.recorded && post.ended == nullptr) post.ended = record(post.stream);
    return std::make_shared<const GpuEnd>(device_, post.ended, post.recorded);
  });
}

std::vector<Ticket> NcclChannel::start_together(std::span<const Request* const> requests, WaitContext& wait) {
  return guarded("coalesce", [&] {
    start_posts(wait);
    const Request& first = *requests.front();
    const bool recorded = first.is_captured;
    const CUstream stream = stream_of(first);
    if (recorded) communicator_->note_graph();
    native_.run_together(requests, stream, wait);
    const std::shared_ptr<GpuEvent> ended = recorded ? nullptr : record(stream);
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      posts_.emplace(next_post_, Post{.peer = rank_, .recorded = recorded, .stream = stream, .ended = ended});
      tickets.push_back({next_post_++});
    }
    return tickets;
  });
}

// ---- Memory

std::shared_ptr<void> NcclChannel::allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait) {
  cause_->check("alloc", group_);
  std::shared_ptr<WindowMemory> memory;
  std::string problem;
  try {
    memory = std::make_shared<WindowMemory>(communicator_->nccl(), device_->cuda(), device_->ordinal(), bytes, use_);
  } catch (const Error& error) {
    problem = error.message().substr(0, kMostWords);
  }
  const std::vector<std::string> problems = exchange(problem);
  for (std::size_t r = 0; r < problems.size(); ++r) {
    if (!problems[r].empty())
      throw Error(ErrorCode::resource, fmt::format("alloc: rank {}: {}", r, problems[r]), group_, static_cast<int>(r));
  }
  guarded("alloc", [&] {
    start_posts(wait);
    WindowMemory::make_window(memory, *communicator_, wait);
    const CudaDriver& cuda = device_->cuda();
    cuda.check(cuda.MemsetD8Async(reinterpret_cast<CUdeviceptr>(memory->get()), 0, bytes, stream_->get()),
               "cannot zero memory of the GPU");
    std::shared_ptr<GpuEvent> ended = record(stream_->get());
    wait_for(*ended, wait);
    idle_.push_back(std::move(ended));
    std::erase_if(windows_, [](const auto& window) { return window.expired(); });
    windows_.push_back(memory);
  });
  return {memory, memory->get()};
}

std::shared_ptr<void> NcclChannel::register_memory(void* memory, std::size_t bytes, WaitContext& wait) {
  cause_->check("register_memory", group_);
  {
    const GpuDevice::Scope scope(*device_);
    check_memory("register_memory", {memory, bytes, DType::uint8});
  }
  std::optional<Error> refusal;
  std::shared_ptr<Registration> registration;
  try {
    guarded("register_memory", [&] {
      start_posts(wait);
      registration = std::make_shared<Registration>(device_->cuda());
      const ncclResult_t result = registration->enter(*communicator_, memory, bytes);
      if (result == ncclSuccess) return registrations_.push_back(registration);
      const Error error = communicator_->error_of(result, "cannot register memory");
      if (result != ncclInvalidUsage && result != ncclInvalidArgument) throw error;
      refusal.emplace(ErrorCode::unavailable, error.message(), group_, rank_);
    });
  } catch (const Error& error) {  // the channel is broken, which these two do not say here
    if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::invalid_argument) throw;
    throw Error(ErrorCode::internal, error.message(), group_, error.rank());
  }
  if (refusal) throw *refusal;
  return registration;
}

void NcclChannel::release_memory(const std::shared_ptr<void>& registration, WaitContext& wait) {
  guarded("release", [&] {
    start_posts(wait);
    const auto found = std::ranges::find(registrations_, registration);
    if (found == registrations_.end()) return;
    const std::shared_ptr<Registration> released = *found;
    registrations_.erase(found);
    communicator_->give(
        "cannot release memory",
        [released, communicator = communicator_.get()] { return released->deregister(*communicator); }, wait);
    communicator_->check();
  });
}

// ---- Sub-groups

// What NCCL runs in the background is in the way of a split, and a graph may run at any time.
bool NcclChannel::can_split() const noexcept {
  return !cause_->is_set() && posts_.empty() && !communicator_->has_graphs() &&
         multi_->place().settings.shares_with_children();
}

std::unique_ptr<Channel> NcclChannel::split(std::span<const int> ranks, const ConnectRequest& request,
                                            WaitContext& wait) {
  const NcclMultiChannel::Place& own = multi_->place();
  NcclMultiChannel::Place place{.group = std::string(request.group),
                                .rank = request.rank,
                                .size = request.size,
                                .boot_id = own.boot_id,
                                .store = request.store,
                                .priority = request.is_high_priority_stream ? Priority::highest : Priority::normal,
                                .settings = own.settings,
                                .has_shared_gpus = own.has_shared_gpus};
  for (const int rank : ranks) place.devices.push_back(own.devices[static_cast<std::size_t>(rank)]);
  return guarded("split", [&]() -> std::unique_ptr<Channel> {
    auto device = std::make_unique<GpuDevice>(device_->cuda(), device_->ordinal());
    const Membership membership{.id = {},
                                .rank = request.rank,
                                .size = static_cast<int>(ranks.size()),
                                .has_shared_gpus = place.has_shared_gpus,
                                .name = place.group,
                                .settings = place.settings};
    const NcclLibrary& nccl = communicator_->nccl();
    auto communicator =
        std::make_unique<Communicator>(nccl, *device, membership, Communicator::make_launcher(nccl, *device));
    try {
      communicator->split_from(*communicator_, ranks.empty() ? 0 : ranks.front(), wait);
    } catch (const Error& error) {  // told before the work of those that share ends
      cause_->set(Error(error.code(), error.message(), group_, error.rank(), error.world_rank(), error.is_loss()));
      abort_all(communicators());
      communicator->abort_split(*communicator_);
      throw;
    }
    if (ranks.empty()) return nullptr;
    return std::make_unique<NcclChannel>(std::move(place), std::move(device), std::move(communicator), cause_);
  });
}

// ---- Messages

// Of this rank's GPU: others would be read by address, and give anything.
void NcclChannel::check_memory(const char* call, ConstTensorView data) const {
  if (data.empty()) return;
  const std::optional<int> ordinal = known_memory_.device_of(data.data, data.bytes(), device_->cuda());
  if (ordinal == device_->ordinal()) return;
  throw Error(
      ErrorCode::invalid_argument,
      ordinal ? fmt::format("{}: the memory is on GPU {}, and this rank's part in the group on GPU {}; call "
                            "cudaSetDevice({}) before the group is made",
                            call, *ordinal, device_->ordinal(), *ordinal)
              : fmt::format("{}: the memory is no memory of a GPU, or not to its end, though its view says so", call),
      group_, rank_);
}

Ticket NcclChannel::post(const char* call, Post post) {
  cause_->check(call, group_);
  if (post.peer < 0 || post.peer >= size_ || post.peer == rank_)
    throw Error(post.peer == kAnyPeer ? ErrorCode::unavailable : ErrorCode::invalid_argument,
                post.peer == kAnyPeer
                    ? fmt::format("{}: NCCL receives from a rank that is named; name it", call)
                    : fmt::format("{}: peer {} is not in the group, or this rank itself; this is rank {} of {}", call,
                                  post.peer, rank_, size_),
                group_, post.peer);
  const NcclUse::Inside inside(*use_);
  waiting_.push_back(next_post_);
  posts_.emplace(next_post_, std::move(post));
  return Ticket{next_post_++};
}

void NcclChannel::post_after(Stream stream) {
  if (is_default(stream)) return;  // give_posts() sees to it
  if (is_captured(stream))
    throw Error(ErrorCode::unavailable,
                "a message cannot be part of a graph, as it begins together with others; send it outside of the "
                "capture",
                group_, rank_);
  const NcclUse::Inside inside(*use_);
  const GpuDevice::Scope scope(*device_);
  put_after(static_cast<CUstream>(stream.handle));
}

Ticket NcclChannel::post_send(int peer, std::uint64_t /*slot*/, ConstTensorView data) {
  return post("post_send", {.peer = peer, .send = data, .is_send = true});
}

Ticket NcclChannel::post_recv(int peer, std::uint64_t /*slot*/, TensorView data) {
  return post("post_recv", {.peer = peer, .receive = data});
}

// Gives NCCL what has been posted up to `last`, all together. It may take a while to accept it: it connects to the
// peers first. Requires: there is such a post, and NCCL is taking none.
void NcclChannel::give_posts(std::uint64_t last) {
  const NcclLibrary& nccl = communicator_->nccl();
  const CUstream stream = stream_of(Request());
  Together together(nccl);
  const auto end = std::upper_bound(waiting_.begin(), waiting_.end(), last);
  for (auto number = waiting_.begin(); number != end; ++number) {
    const Post& post = posts_.at(*number);
    const ConstTensorView data = post.is_send ? post.send : ConstTensorView(post.receive);
    together.add([&nccl, peer = post.peer, is_send = post.is_send, from = data.data, to = post.receive.data,
                  array = to_nccl(data.dtype, data.count), comm = communicator_->get(), stream] {
      return is_send ? nccl.Send(from, array.count, array.type, peer, comm, stream)
                     : nccl.Recv(to, array.count, array.type, peer, comm, stream);
    });
  }
  communicator_->begin("cannot start messages", std::move(together));
  starting_.assign(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
}

// Called when NCCL has accepted it.
void NcclChannel::note_start() {
  const std::shared_ptr<GpuEvent> ended = record(stream_->get());
  for (const std::uint64_t number : starting_) posts_.at(number).ended = ended;
  starting_.clear();
}

void NcclChannel::start_posts(WaitContext& wait) {
  while (!starting_.empty() || !waiting_.empty()) {
    if (starting_.empty()) {
      await_default(wait);
      give_posts(waiting_.back());
    }
    communicator_->settle(wait);
    note_start();
  }
}

// Messages that were posted before a capture: they come after the default stream, which is closed for a while.
void NcclChannel::await_default(WaitContext& wait) const {
  if (is_default_open(*device_)) return;
  wait.describe("the end of a capture of a stream that is ordered with the default stream, after which messages begin");
  for (PollPause pause; !is_default_open(*device_); pause(wait)) throw_if_broken();
}

// Forgets what has ended.
int NcclChannel::take(std::unordered_map<std::uint64_t, Post>::iterator post) {
  const int peer = post->second.peer;
  // Another post of its group has it, or the end of an operation that somebody keeps.
  if (post->second.ended.use_count() == 1) idle_.push_back(std::move(post->second.ended));
  posts_.erase(post);
  return peer;
}

std::optional<int> NcclChannel::test(Ticket ticket) {
  return test(ticket, true);
}

std::optional<int> NcclChannel::look(Ticket ticket) {
  return test(ticket, false);
}

// A later look begins it: NCCL may still be taking what came before.
void NcclChannel::hand_over() {
  const NcclUse::Look look(*use_);
  due_ = next_post_ - 1;
}

bool NcclChannel::awaits_capture() const {
  {
    const NcclUse::Look look(*use_);
    if (waiting_.empty()) return false;
  }
  return !is_default_open(*device_);
}

std::optional<int> NcclChannel::test(Ticket ticket, bool hands_over) {
  return guarded("test", [&]() -> std::optional<int> {
    const bool busy = communicator_->is_busy();
    const auto found = posts_.find(ticket.id);
    if (found == posts_.end()) throw Error(ErrorCode::invalid_argument, "test: the ticket is not in use");
    if (found->second.recorded) return take(found);
    if (!busy && !starting_.empty()) note_start();
    const std::uint64_t last = hands_over ? next_post_ : due_;
    if (!busy && !waiting_.empty() && waiting_.front() <= last && is_default_open(*device_)) give_posts(last);
    if (found->second.ended == nullptr || !found->second.ended->done()) return std::nullopt;
    throw_if_broken();
    return take(found);
  });
}

int NcclChannel::wait(Ticket ticket, WaitContext& wait) {
  return guarded("wait", [&] {
    start_posts(wait);
    const auto found = posts_.find(ticket.id);
    if (found == posts_.end()) throw Error(ErrorCode::invalid_argument, "wait: the ticket is not in use");
    const Post& post = found->second;
    wait.describe(post.peer == rank_ ? "the GPU"
                                     : fmt::format("a message {} rank {}", post.is_send ? "to" : "from", post.peer));
    if (!post.recorded) wait_for(*post.ended, wait);
    return take(found);
  });
}

}  // namespace col::nccl_backend

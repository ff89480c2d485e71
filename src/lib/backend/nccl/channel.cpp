#include "backend/nccl/channel.hpp"

#include <unistd.h>

#include <new>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/poll_pause.hpp"
#include "backend/nccl/together.hpp"
#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {

NcclChannel::NcclChannel(std::string group, int rank, int size, std::unique_ptr<GpuDevice> device,
                         std::unique_ptr<Communicator> communicator)
    : group_(std::move(group)),
      rank_(rank),
      size_(size),
      pid_(::getpid()),
      device_(std::move(device)),
      communicator_(std::move(communicator)),
      native_(*communicator_, *device_, rank, size) {
  const GpuDevice::Scope scope(*device_);
  stream_ = std::make_unique<GpuStream>(device_->cuda());
  before_ = std::make_unique<GpuEvent>(device_->cuda());
  communicator_->on_wait([this] { throw_if_broken(); });
}

NcclChannel::~NcclChannel() {
  if (::getpid() != pid_) {  // neither CUDA nor NCCL survives a fork
    forget();
    return;
  }
  const std::lock_guard use(use_);
  try {
    const GpuDevice::Scope scope(*device_);
    posts_.clear();
    communicator_.reset();
    native_.release();  // waits for the device, on which nothing of the communicator runs any more
    idle_.clear();
    before_.reset();
    stream_.reset();
  } catch (const std::exception&) {  // the driver is shutting down, and takes back everything itself
    forget();
  }
}

// Leaves everything to the end of the process.
void NcclChannel::forget() noexcept {
  [[maybe_unused]] auto* const posts = new (std::nothrow) auto(std::move(posts_));
  [[maybe_unused]] auto* const idle = new (std::nothrow) auto(std::move(idle_));
  native_.forget();
  (void)before_.release();
  (void)communicator_.release();
  (void)stream_.release();
  (void)device_.release();
}

void NcclChannel::enter(const char* call) const {
  if (!broken_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(cause_mutex_);
  throw Error(
      ErrorCode::aborted,
      fmt::format("{}: the group was broken by an earlier error; destroy it and create it anew. First cause: {}", call,
                  cause_->what()),
      group_, cause_->rank());
}

void NcclChannel::fail(const Error& error) {
  {
    const std::lock_guard lock(cause_mutex_);
    if (!cause_) cause_ = error;
    broken_.store(true, std::memory_order_release);
  }
  communicator_->abort();
  throw error;
}

// Runs `body` as the only thread inside NCCL. Whatever it throws breaks the channel.
template <class Body>
auto NcclChannel::guarded(const char* call, Body body) {
  enter(call);
  const std::lock_guard use(use_);
  enter(call);  // again: it may have been aborted meanwhile
  const GpuDevice::Scope scope(*device_);
  try {
    return body();
  } catch (const Error& error) {
    fail(Error(error.code(), error.message(), group_, error.rank()));
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::resource, "nccl: out of memory", group_, rank_));
  }
}

void NcclChannel::abort(const Error& cause) noexcept {
  {
    const std::lock_guard lock(cause_mutex_);
    if (!cause_) cause_ = cause;
    broken_.store(true, std::memory_order_release);
  }
  // Who is inside NCCL sees that it is broken, and aborts on its way out.
  const std::unique_lock use(use_, std::try_to_lock);
  if (!use) return;
  try {
    const GpuDevice::Scope scope(*device_);
    communicator_->abort();
  } catch (const std::exception&) {
  }
}

void NcclChannel::wait_for(const GpuEvent& event, WaitContext& wait) {
  for (PollPause pause; !event.done(); pause(wait)) {
    communicator_->check();
    throw_if_broken();
  }
}

void NcclChannel::throw_if_broken() const {
  if (!broken_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(cause_mutex_);
  throw Error(cause_->code(), cause_->message(), group_, cause_->rank());
}

// ---- Collectives

// The caller's, whose work comes before; else ours, after what the default stream of the device has been given so far.
CUstream NcclChannel::stream_of(const Request& request) {
  if (request.stream.handle != nullptr) return static_cast<CUstream>(request.stream.handle);
  before_->record(CU_STREAM_LEGACY);
  const CudaDriver& cuda = device_->cuda();
  cuda.check(cuda.StreamWaitEvent(stream_->get(), before_->get(), CU_EVENT_WAIT_DEFAULT), "cannot order CUDA streams");
  return stream_->get();
}

// Whether the caller's stream is being captured: work is then noted down for a graph, and none of it runs.
bool NcclChannel::is_recorded(const Request& request) const {
  if (request.stream.handle == nullptr) return false;
  const GpuDevice::Scope scope(*device_);
  const CudaDriver& cuda = device_->cuda();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuda.check(cuda.StreamIsCapturing(static_cast<CUstream>(request.stream.handle), &status), "cannot use the stream");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// An event at the end of what the stream has been given so far.
std::shared_ptr<GpuEvent> NcclChannel::record(CUstream stream) {
  if (idle_.empty()) idle_.push_back(std::make_shared<GpuEvent>(device_->cuda()));
  std::shared_ptr<GpuEvent> event = std::move(idle_.back());
  idle_.pop_back();
  event->record(stream);
  return event;
}

void NcclChannel::check(const Request& request) const {
  const char* const call = to_string(request.collective).data();
  check_memory(call, request.in);
  check_memory(call, request.out);
  try {
    native_.check(request);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", call, error.message()), group_, rank_);
  }
  if (native_.needs_scratch(request) && is_recorded(request))
    throw Error(
        ErrorCode::unavailable,
        fmt::format("this {} needs memory of its own, which a graph cannot get; call it outside of the capture, "
                    "or, what is only in place (alltoall), with separate buffers",
                    call),
        group_, rank_);
}

// The end of it; null when it is recorded.
std::shared_ptr<GpuEvent> NcclChannel::start(const Request& request, WaitContext& wait) {
  const bool recorded = is_recorded(request);
  const CUstream stream = recorded ? static_cast<CUstream>(request.stream.handle) : stream_of(request);
  native_.run(request, stream, wait);
  return recorded ? nullptr : record(stream);
}

void NcclChannel::native(const Request& request, WaitContext& wait) {
  guarded(to_string(request.collective).data(), [&] {
    std::shared_ptr<GpuEvent> ended = start(request, wait);
    if (ended == nullptr) return;
    wait.describe("the GPU");
    wait_for(*ended, wait);
    idle_.push_back(std::move(ended));
  });
}

Ticket NcclChannel::start_native(const Request& request, WaitContext& wait) {
  return guarded(to_string(request.collective).data(), [&] {
    std::shared_ptr<GpuEvent> ended = start(request, wait);
    posts_.emplace(next_post_, Post{.peer = rank_, .recorded = ended == nullptr, .ended = std::move(ended)});
    return Ticket{next_post_++};
  });
}

// ---- Messages

// Of this rank's GPU: others would be read by address, and give anything.
void NcclChannel::check_memory(const char* call, ConstTensorView data) const {
  if (data.empty()) return;
  const CudaDriver& cuda = device_->cuda();
  const GpuDevice::Scope scope(*device_);
  int ordinal = -1;
  const CUresult found =
      cuda.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, reinterpret_cast<CUdeviceptr>(data.data));
  if (found != CUDA_ERROR_INVALID_VALUE) cuda.check(found, "cannot look at the memory");
  if (found == CUDA_SUCCESS && ordinal == device_->ordinal()) return;
  throw Error(ErrorCode::invalid_argument,
              found == CUDA_SUCCESS
                  ? fmt::format("{}: the memory is on GPU {}, and this rank's part in the group on GPU {}; call "
                                "cudaSetDevice({}) before the group is made",
                                call, ordinal, device_->ordinal(), ordinal)
                  : fmt::format("{}: the memory is no memory of a GPU, though its view says so", call),
              group_, rank_);
}

Ticket NcclChannel::post(const char* call, Post post) {
  enter(call);
  if (post.peer < 0 || post.peer >= size_ || post.peer == rank_)
    throw Error(post.peer == kAnyPeer ? ErrorCode::unavailable : ErrorCode::invalid_argument,
                post.peer == kAnyPeer
                    ? fmt::format("{}: NCCL receives from a rank that is named; name it", call)
                    : fmt::format("{}: peer {} is not in the group, or this rank itself; this is rank {} of {}", call,
                                  post.peer, rank_, size_),
                group_, post.peer);
  const std::lock_guard use(use_);
  waiting_.push_back(next_post_);
  posts_.emplace(next_post_, std::move(post));
  return Ticket{next_post_++};
}

Ticket NcclChannel::post_send(int peer, std::uint64_t /*slot*/, ConstTensorView data) {
  return post("post_send", {.peer = peer, .send = data, .is_send = true});
}

Ticket NcclChannel::post_recv(int peer, std::uint64_t /*slot*/, TensorView data) {
  return post("post_recv", {.peer = peer, .receive = data});
}

void NcclChannel::start_posts(WaitContext& wait) {
  if (waiting_.empty()) return;
  const NcclLibrary& nccl = communicator_->nccl();
  const CUstream stream = stream_of(Request());
  communicator_->settle(nccl.GroupStart(), "cannot start messages", wait);
  Together together(nccl);
  for (const std::uint64_t number : waiting_) {
    Post& post = posts_.at(number);
    const ncclResult_t result = post.is_send
                                    ? nccl.Send(post.send.data, post.send.count, to_nccl(post.send.dtype), post.peer,
                                                communicator_->get(), stream)
                                    : nccl.Recv(post.receive.data, post.receive.count, to_nccl(post.receive.dtype),
                                                post.peer, communicator_->get(), stream);
    communicator_->settle(result, "cannot start a message", wait);
  }
  communicator_->settle(together.end(), "cannot start messages", wait);
  const std::shared_ptr<GpuEvent> ended = record(stream);
  for (const std::uint64_t number : waiting_) posts_.at(number).ended = ended;
  waiting_.clear();
}

// Forgets what has ended.
int NcclChannel::take(std::unordered_map<std::uint64_t, Post>::iterator post) {
  const int peer = post->second.peer;
  if (post->second.ended.use_count() == 1) idle_.push_back(std::move(post->second.ended));
  posts_.erase(post);
  return peer;
}

std::optional<int> NcclChannel::test(Ticket ticket) {
  return guarded("test", [&]() -> std::optional<int> {
    communicator_->check();
    const auto found = posts_.find(ticket.id);
    if (found == posts_.end()) throw Error(ErrorCode::invalid_argument, "test: the ticket is not in use");
    // What is posted is started by wait(): NCCL may then block until the peers have started theirs.
    if (found->second.recorded) return take(found);
    if (found->second.ended == nullptr || !found->second.ended->done()) return std::nullopt;
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

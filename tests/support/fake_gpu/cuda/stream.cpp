#include "support/fake_gpu/cuda/stream.hpp"

#include <algorithm>
#include <thread>

#include "support/fake_gpu/cuda/capture.hpp"

namespace fake_gpu {

bool Ticket::done() const {
  return stream == nullptr || stream->finished_ >= number;
}

Stream::Stream(std::shared_ptr<Context> owner, unsigned creation_flags, int stream_priority, bool null_stream)
    : context_(std::move(owner)), flags_(creation_flags), priority_(stream_priority), is_null_(null_stream) {}

Ticket Stream::push(Work work, const char* label, std::vector<Ticket> after) {
  queue_.push_back({std::move(work), label, std::move(after)});
  ++issued_;
  if (!serving_) {
    serving_ = true;
    std::thread([self = shared_from_this()] { self->serve(); }).detach();
  }
  given_.notify_one();
  return last();
}

void Stream::close() {
  closing_ = true;
  if (idle()) std::erase(context_->streams, shared_from_this());
  given_.notify_one();
}

void Stream::serve() {
  Machine& all = machine();
  Lock lock(all.mutex);
  for (;;) {
    given_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) break;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    all.wait(lock, std::string(item.label) + " waits for other work, which", [&] {
      if (all.held || (all.holds_copies_to_device && item.label == kCopyToDevice)) return false;
      return std::all_of(item.after.begin(), item.after.end(), [](const Ticket& t) { return t.done(); });
    });
    item.after.clear();
    run(lock, std::move(item));
    ++finished_;
    all.changed.notify_all();
  }
  std::erase(context_->streams, shared_from_this());
}

void Stream::run(Lock& lock, Item item) {
  if (context_->broken != CUDA_SUCCESS) return;
  running_ = item.label;
  lock.unlock();
  CUresult result = CUDA_SUCCESS;
  try {
    if (machine().delay.count() > 0) std::this_thread::sleep_for(machine().delay);
    pause_at_random();
    if (item.work) item.work();
  } catch (const WorkFault& fault) {
    result = fault.code;
  }
  // What the work holds is let go before the work counts as done.
  item.work = nullptr;
  lock.lock();
  running_ = nullptr;
  if (context_->broken == CUDA_SUCCESS) context_->broken = result;
}

namespace {

// The calling thread's own, which every thread names alike.
std::shared_ptr<Stream> stream_of_thread(const std::shared_ptr<Context>& context) {
  thread_local std::map<Context*, std::weak_ptr<Stream>> streams;
  std::shared_ptr<Stream> stream = streams[context.get()].lock();
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(context, CU_STREAM_DEFAULT, 0, false);
    context->streams.push_back(stream);
    streams[context.get()] = stream;
  }
  return stream;
}

}  // namespace

std::shared_ptr<Stream> find_stream(Machine& machine, CUstream handle, const std::shared_ptr<Context>& current) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return current == nullptr ? nullptr : current->null_stream;
  if (handle == CU_STREAM_PER_THREAD) return current == nullptr ? nullptr : stream_of_thread(current);
  return machine.streams.find(handle);
}

CUresult enqueue(Machine& machine, Stream& stream, Work work, const char* label, Ticket* ticket,
                 std::vector<Ticket> after) {
  if (stream.capture != nullptr) {
    if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    add_node(stream, std::move(work), label);
    return CUDA_SUCCESS;
  }
  Context& context = *stream.context();
  if (stream.is_null()) {
    CUresult allowed = forbid_null_stream(machine, context);
    if (allowed != CUDA_SUCCESS) return allowed;
    for (const auto& other : context.streams) {
      if (other->blocking() && !other->idle()) after.push_back(other->last());
    }
  } else if (stream.blocking() && !context.null_stream->idle()) {
    after.push_back(context.null_stream->last());
  }
  Ticket pushed = stream.push(std::move(work), label, std::move(after));
  if (ticket != nullptr) *ticket = pushed;
  return CUDA_SUCCESS;
}

void drain(Machine& machine, Lock& lock, Context& context, const char* what) {
  std::vector<Ticket> tickets{context.null_stream->last()};
  for (const auto& stream : context.streams) tickets.push_back(stream->last());
  machine.wait(lock, what, [&] {
    return std::all_of(tickets.begin(), tickets.end(), [](const Ticket& ticket) { return ticket.done(); });
  });
}

bool& inside_host_function() {
  thread_local bool inside = false;
  return inside;
}

}  // namespace fake_gpu

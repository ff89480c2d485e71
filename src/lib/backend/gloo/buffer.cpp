#include <algorithm>
#include <utility>

#include "backend/far_wait.hpp"
#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

GuardedBuffer::GuardedBuffer(GuardedContext& context, void* data, std::size_t bytes)
    : ::gloo::transport::UnboundBuffer(data, bytes), context_(context) {
  const std::lock_guard lock(context_.mutex_);
  place_ = context_.buffers_.size();
  context_.buffers_.push_back(this);
}

GuardedBuffer::~GuardedBuffer() {
  const std::lock_guard lock(context_.mutex_);
  GuardedBuffer* const last = context_.buffers_.back();
  context_.buffers_[place_] = last;
  last->place_ = place_;
  context_.buffers_.pop_back();
  for (const OperationPtr& operation : unfinished_) context_.withdraw(operation);
  if (!unfinished_.empty()) context_.flush();
}

void GuardedBuffer::post(Operation operation) {
  const std::lock_guard lock(context_.mutex_);
  if (context_.broken()) throw context_.cause().get();
  if (context_.mismatch_ != nullptr) std::rethrow_exception(context_.mismatch_);
  operation.buffer = this;
  const auto posted = std::make_shared<Operation>(std::move(operation));
  unfinished_.push_back(posted);
  (posted->sends ? sent_ : received_).posted.push_back(posted);
  if (posted->sends) {
    context_.post_send(posted);
  } else {
    context_.post_recv(posted);
  }
  context_.flush();
  context_.hand_on();
}

void GuardedBuffer::send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  post({.data = static_cast<char*>(ptr) + offset,
        .bytes = bytes,
        .line = line_of(slot, bytes),
        .sends = true,
        .peer = peer});
}

void GuardedBuffer::recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  post({.data = static_cast<char*>(ptr) + offset, .bytes = bytes, .line = line_of(slot, bytes), .peer = peer});
}

void GuardedBuffer::recv(std::vector<int> peers, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  sources_ = peers;
  post({.data = static_cast<char*>(ptr) + offset,
        .bytes = bytes,
        .line = line_of(slot, bytes),
        .sources = std::move(peers)});
}

void GuardedBuffer::send_message(int peer, std::uint64_t slot, std::size_t bytes) {
  post({.data = static_cast<char*>(ptr),
        .bytes = bytes,
        .line = line_of(stream_slot(slot), bytes),
        .content = content_of(slot),
        .sends = true,
        .peer = peer});
}

void GuardedBuffer::recv_message(int peer, std::uint64_t slot, std::size_t bytes) {
  post({.data = static_cast<char*>(ptr),
        .bytes = bytes,
        .line = line_of(stream_slot(slot), bytes),
        .content = content_of(slot),
        .peer = peer});
}

void GuardedBuffer::recv_message_from_first(std::vector<int> sources, std::uint64_t slot, std::size_t bytes) {
  sources_ = sources;
  post({.data = static_cast<char*>(ptr),
        .bytes = bytes,
        .line = line_of(stream_slot(slot), bytes),
        .content = content_of(slot),
        .sources = std::move(sources)});
}

void GuardedBuffer::complete(const OperationPtr& operation, int peer) {
  std::erase(unfinished_, operation);
  operation->is_done = true;
  operation->peer = peer;
  Direction& direction = operation->sends ? sent_ : received_;
  for (auto& posted = direction.posted; !posted.empty() && posted.front()->is_done; posted.pop_front()) {
    ++direction.completions;
    direction.peer = posted.front()->peer;
  }
}

void GuardedBuffer::fail_if_with(int peer, const std::exception_ptr& failure) {
  const bool is_with = std::any_of(unfinished_.begin(), unfinished_.end(),
                                   [&](const OperationPtr& operation) { return operation->peer == peer; });
  if (is_with) fail(failure);
}

// ---- Waiting

std::vector<int> GuardedBuffer::awaited(const Direction& direction) const {
  std::vector<int> ranks;
  const auto add = [&](int rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  for (const OperationPtr& operation : unfinished_) {
    if (operation->sends != direction.sends) continue;
    if (operation->peer >= 0) add(operation->peer);
    if (operation->peer < 0) std::for_each(operation->sources.begin(), operation->sources.end(), add);
  }
  return ranks;
}

// Whether an operation has ended, which then counts as taken. Throws if none will. The caller holds the mutex.
bool GuardedBuffer::is_done(Direction& direction) {
  if (direction.completions > 0) {
    --direction.completions;
    return true;
  }
  if (context_.broken()) throw context_.cause().get();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  // A receive that no peer has taken up yet is unknown to the connections.
  if (sources_.empty()) return false;
  if (const auto lost = context_.why_lost_locked(sources_)) std::rethrow_exception(lost);
  return false;
}

// Looks for a while, as sleeping and being woken takes longer than most messages do. Whether it is there.
bool GuardedBuffer::poll(std::unique_lock<core::Mutex>& lock, Direction& direction) {
  const auto look = [&] {
    if (is_done(direction)) return true;
    context_.turn(lock, Duration::zero());
    return false;
  };
  const auto began = Deadline::Clock::now();
  const auto keeps_until = began + (context_.is_crowded_ ? Duration::zero() : Duration(backend::kFarKeepingTime));
  do {
    for (int i = 0; i < backend::kFarLooksAtOnce; ++i) {
      if (look()) return true;
    }
  } while (Deadline::Clock::now() < keeps_until);
  for (const auto until = Deadline::Clock::now() + backend::kFarYieldingTime; Deadline::Clock::now() < until;) {
    lock.unlock();
    core::yield();
    lock.lock();
    if (look()) return true;
  }
  return is_done(direction);
}

bool GuardedBuffer::wait(Direction& direction, int* rank) {
  std::unique_lock lock(context_.mutex_);
  // What this wait has begun to move goes on without it.
  struct HandOn {
    GuardedContext& context;
    ~HandOn() { context.hand_on(); }
  } const hand_on{context_};
  auto next_check = Deadline::Clock::time_point::max();
  const bool polls = std::none_of(unfinished_.begin(), unfinished_.end(), [&](const OperationPtr& operation) {
    return operation->sends == direction.sends && operation->bytes > backend::kMostPolledBytes;
  });
  bool is_there = polls ? poll(lock, direction) : is_done(direction);
  for (; !is_there; is_there = is_done(direction)) {
    if (std::exchange(direction.interrupted, false)) return false;
    const Duration slice = context_.slice();
    if (next_check == Deadline::Clock::time_point::max()) next_check = Deadline::Clock::now() + slice;
    if (context_.turn(lock, slice) && Deadline::Clock::now() < next_check) continue;
    const std::vector<int> ranks = awaited(direction);
    lock.unlock();
    try {
      context_.check(direction.verb, ranks);
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
    next_check = Deadline::Clock::time_point::max();
  }
  if (rank != nullptr) *rank = direction.peer;
  return true;
}

bool GuardedBuffer::waitRecv(int* rank, std::chrono::milliseconds /*timeout*/) {
  return wait(received_, rank);
}

bool GuardedBuffer::waitSend(int* rank, std::chrono::milliseconds /*timeout*/) {
  return wait(sent_, rank);
}

std::optional<int> GuardedBuffer::test(Direction& direction) {
  std::unique_lock lock(context_.mutex_);
  if (direction.completions == 0) {
    context_.turn(lock, Duration::zero());
    context_.hand_on();
  }
  return is_done(direction) ? std::optional(direction.peer) : std::nullopt;
}

void GuardedBuffer::interrupt(Direction& direction) {
  const std::lock_guard lock(context_.mutex_);
  direction.interrupted = true;
  context_.has_news_ = true;
  context_.poller_.wake();
}

}  // namespace col::gloo_backend

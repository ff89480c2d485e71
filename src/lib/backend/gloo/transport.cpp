// Overrides what Gloo does not promise to keep: transport.hpp says why.
#include "backend/gloo/transport.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/common/error.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/gloo/handshaking.hpp"

namespace col::gloo_backend {

namespace {

constexpr int kMaxTries = 10;  // to make a pair before a stranger connects to it

// How often in a row the event thread finds a connection in use before it yields to others, and then before it pauses.
// A thread that posts a short message is done before the pauses. These last longer than requested, by the kernel's
// slack of 50 us. Measured with fewer attempts, messages of 8 bytes took twice as long.
constexpr int kBriefMisses = 20;
constexpr int kMissesBeforePause = 1000;
constexpr auto kPause = std::chrono::microseconds(50);

// Whether the memory of an operation is no longer there.
bool is_gone(const ::gloo::WeakNonOwningPtr<tcp::UnboundBuffer>& buffer) {
  return buffer && !::gloo::NonOwningPtr<tcp::UnboundBuffer>(buffer);
}

}  // namespace

class GuardedPair final : public Handshaking<tcp::Pair> {
 public:
  GuardedPair(GuardedContext& context, tcp::Device* device, int rank)
      : Handshaking<tcp::Pair>(context.credentials(), &context, device, rank, ::gloo::kNoTimeout), guarded_(context) {
    localRank_ = 0;  // left uninitialised by Gloo
  }
  ~GuardedPair() override {
    // As in the base class, but while this is still a GuardedPair for the event thread. A soft close: what was written
    // is delivered.
    const std::lock_guard lock(m_);
    if (state_ != CLOSED) GuardedPair::changeState(CLOSED);
  }

  // Whether no stranger connected while it was made.
  bool starts_well() {
    const std::lock_guard lock(m_);
    return Handshaking::starts_well();
  }
  // Ends both directions of the connection now. The event thread closes it when it sees this.
  void shut() noexcept {
    const std::lock_guard lock(m_);
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
  }
  std::exception_ptr failure() {
    const std::lock_guard lock(m_);
    return ex_;
  }
  bool in_transfer(const tcp::UnboundBuffer& buffer) {
    const std::lock_guard lock(m_);
    bool found = false;
    for_each_transfer([&](GuardedBuffer& other) { found = found || &other == &buffer; });
    return found;
  }

  void handleEvents(int events) override;

 protected:
  void handleReadWrite(int events) override;
  void changeState(state next) noexcept override;
  void waitUntilConnected(std::unique_lock<std::mutex>& lock, bool use_timeout) override;

 private:
  // For all private functions: the caller holds the pair's mutex.
  void fail(const std::string& why) {
    if (ex_ == nullptr && state_ != CLOSED) signalException(why);
  }
  bool stuck();
  void unwatch_and_close() noexcept;
  template <class Visit>
  void for_each_transfer(Visit visit);

  GuardedContext& guarded_;
  int misses_ = 0;  // failed attempts in a row to lock the mutex; only for the event thread
};

// ---- GuardedContext

GuardedContext::GuardedContext(std::shared_ptr<tcp::Device> device, int own_rank, int group_size, std::uint64_t token)
    : tcp::Context(std::move(device), own_rank, group_size), credentials_(token, own_rank, group_size) {
  // Read by Gloo in places, and not initialised by it. Zero means none: our waits have deadlines of their own.
  setTimeout(::gloo::kNoTimeout);
}

GuardedContext::~GuardedContext() {
  // Here and not in the base class: until its pair is gone, the event thread may ask this object whether it is broken.
  pairs_.clear();
}

std::unique_ptr<::gloo::transport::Pair>& GuardedContext::createPair(int peer) {
  auto& slot = pairs_.at(static_cast<std::size_t>(peer));
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto made = std::make_unique<GuardedPair>(*this, device_.get(), peer);
    const bool starts_well = made->starts_well();
    slot = std::move(made);
    if (starts_well) return slot;
  }
  throw Error(ErrorCode::io,
              "gloo: strangers connect to every port as soon as it is there; keep them out by a firewall");
}

Buffer GuardedContext::createUnboundBuffer(void* data, std::size_t bytes) {
  return std::make_unique<GuardedBuffer>(std::static_pointer_cast<GuardedContext>(shared_from_this()), data, bytes);
}

GuardedPair* GuardedContext::pair(int peer) {
  return static_cast<GuardedPair*>(pairs_.at(static_cast<std::size_t>(peer)).get());
}

std::chrono::nanoseconds GuardedContext::slice() const noexcept {
  return wait_ != nullptr ? wait_->slice() : std::chrono::nanoseconds::zero();
}

void GuardedContext::check(std::string what, int peer) {
  if (broken()) throw cause_.get();
  if (extra_check_) extra_check_();
  if (wait_ == nullptr) throw Error(ErrorCode::internal, "gloo: a wait without a WaitContext; please report this");
  wait_->describe(std::move(what));
  wait_->waiting(-1, peer);
  wait_->check();
}

void GuardedContext::break_off(const Error& cause) noexcept {
  cause_.set(cause);
  for (int r = 0; r < size; ++r) {
    if (GuardedPair* const p = pair(r); p != nullptr) p->shut();
  }
}

int GuardedContext::rank_that_failed_with(const std::exception_ptr& failure) {
  for (int r = 0; r < size; ++r) {
    GuardedPair* const p = pair(r);
    if (p != nullptr && failure != nullptr && p->failure() == failure) return r;
  }
  return -1;
}

std::vector<int> GuardedContext::ranks_in_transfer(const tcp::UnboundBuffer& buffer) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    GuardedPair* const p = pair(r);
    if (p != nullptr && p->in_transfer(buffer)) ranks.push_back(r);
  }
  return ranks;
}

void GuardedContext::say_goodbye() noexcept {
  for (int r = 0; r < size; ++r) {
    if (pair(r) == nullptr) continue;
    try {
      createUnboundBuffer(nullptr, 0)->send(r, kGoodbyeSlot, 0, 0);
    } catch (const std::exception&) {
    }
  }
}

bool GuardedContext::said_goodbye(int peer) {
  const std::lock_guard lock(mutex_);
  const auto announced = findPendingOperations(kGoodbyeSlot);
  if (announced == pendingOperations_.end()) return false;
  const auto& ranks = announced->getSendList();
  return std::find(ranks.begin(), ranks.end(), peer) != ranks.end();
}

std::exception_ptr GuardedContext::why_lost(const std::vector<int>& sources) {
  if (closed_.load(std::memory_order_acquire) == 0) return nullptr;
  std::exception_ptr last;
  std::size_t gone = 0;
  for (const int source : sources) {
    GuardedPair* const p = pair(source);
    const auto failure = p != nullptr ? p->failure() : nullptr;
    if (failure == nullptr) continue;
    if (!said_goodbye(source)) return failure;
    last = failure;
    ++gone;
  }
  return gone == sources.size() ? last : nullptr;
}

// ---- GuardedPair

template <class Visit>
void GuardedPair::for_each_transfer(Visit visit) {
  const auto visit_weak = [&](const ::gloo::WeakNonOwningPtr<tcp::UnboundBuffer>& weak) {
    // Keeps the buffer from being destroyed during the visit. All buffers here come from createUnboundBuffer().
    const ::gloo::NonOwningPtr<tcp::UnboundBuffer> buffer(weak);
    if (buffer) visit(static_cast<GuardedBuffer&>(*buffer.operator->()));
  };
  for (const auto* pending : {&localPendingSend_, &localPendingRecv_}) {
    for (const auto& [slot, queue] : *pending) {
      for (const auto& operation : queue) visit_weak(std::get<0>(operation));
    }
  }
  for (const auto& operation : tx_) visit_weak(operation.ubuf);
  visit_weak(rx_.ubuf);
}

bool GuardedPair::stuck() {
  // Gloo leaves a message in the socket if there is no buffer to read it into, and in its queue if there is none to
  // write it from. The event loop would then wake up for it again and again.
  if (state_ != CONNECTED) return false;
  if (!tx_.empty() && is_gone(tx_.front().ubuf)) return true;
  if (rx_.nread < sizeof(rx_.preamble)) return false;
  if (rx_.getOpcode() == tcp::Op::SEND_BUFFER) return true;  // a kind of message that we never send
  return rx_.getOpcode() == tcp::Op::SEND_UNBOUND_BUFFER && is_gone(rx_.ubuf);
}

void GuardedPair::handleEvents(int events) {
  // Must not block: a thread that holds the mutex may be waiting for this loop to turn. The event comes again, and at
  // once: a thread that holds it for long, in a large write or because it has lost its core, must not be spun for.
  const std::unique_lock lock(m_, std::try_to_lock);
  if (!lock) {
    if (++misses_ > kMissesBeforePause)
      std::this_thread::sleep_for(kPause);
    else if (misses_ > kBriefMisses)
      std::this_thread::yield();
    return;
  }
  misses_ = 0;
  if (ex_ != nullptr) return;
  if (state_ == CONNECTED) return handleReadWrite(events);
  if (state_ == CLOSED) return;
  try {
    if (guarded_.broken()) throw ::gloo::IoException("this rank left the group after an error");
    handshake();
  } catch (const std::exception& error) {
    // The socket may be one that the loop does not watch, and then the base class would throw where it must not.
    unwatch_and_close();
    fail(error.what());
  }
}

void GuardedPair::unwatch_and_close() noexcept {
  if (fd_ < 0) return;
  try {
    // To close it is not enough where a process that was forked meanwhile has a copy of it: the loop would go on
    // calling this pair, also when it is gone.
    device_->unregisterDescriptor(fd_, this);
  } catch (const std::exception&) {
  }
  ::close(fd_);
  fd_ = -1;
}

void GuardedPair::handleReadWrite(int events) {
  if (guarded_.broken()) return fail("this rank left the group after an error");
  try {
    tcp::Pair::handleReadWrite(events);
    if (stuck()) fail("a message for which there is no buffer");
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void GuardedPair::changeState(state next) noexcept {
  tcp::Pair::changeState(next);
  forget_callers();
  if (next != CLOSED) return;
  // The base class tells the buffers that wait for their turn, not those that are half sent or half received, and none
  // at all when the connection is closed from this side.
  const auto failure = ex_ != nullptr ? ex_ : std::make_exception_ptr(::gloo::IoException("connection closed"));
  for_each_transfer([&](GuardedBuffer& buffer) { buffer.fail(failure); });
  guarded_.count_closed();
}

void GuardedPair::waitUntilConnected(std::unique_lock<std::mutex>& lock, bool /*use_timeout*/) {
  for (;;) {
    if (refused()) {
      throw Error(
          ErrorCode::mismatch,
          fmt::format("the connection to rank {} leads to somebody else, who is of another job or group; create "
                      "the group again",
                      rank_),
          {}, rank_);
    }
    throwIfException();
    if (state_ >= CONNECTED) return;
    cv_.wait_for(lock, guarded_.slice());
    if (state_ >= CONNECTED) continue;
    lock.unlock();
    guarded_.check(fmt::format("the connection to rank {}", rank_), rank_);
    lock.lock();
  }
}

// ---- GuardedBuffer

GuardedBuffer::GuardedBuffer(std::shared_ptr<GuardedContext> context, void* data, std::size_t bytes)
    : tcp::UnboundBuffer(context, data, bytes), guarded_(*context) {}

void GuardedBuffer::fail(const std::exception_ptr& failure) noexcept {
  const std::lock_guard lock(m_);
  if (ex_ == nullptr) ex_ = failure;
  recvCv_.notify_all();
  sendCv_.notify_all();
}

void GuardedBuffer::recv_from_first(std::vector<int> sources, std::uint64_t slot, std::size_t bytes) {
  sources_ = std::move(sources);
  recv(sources_, slot, 0, bytes);
}

// A receive that no peer has taken up yet is unknown to the connections, and so is not told when they close.
std::exception_ptr GuardedBuffer::why_lost() {
  return sources_.empty() ? nullptr : guarded_.why_lost(sources_);
}

void GuardedBuffer::check_while_waiting(const Direction& direction) {
  std::vector<int> ranks = guarded_.ranks_in_transfer(*this);
  if (ranks.empty()) ranks = sources_;
  const int peer = ranks.size() == 1 ? ranks.front() : -1;
  guarded_.check(fmt::format("{} {} {}", direction.verb, ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", ")),
                 peer);
}

bool GuardedBuffer::wait(const Direction& direction, std::unique_lock<std::mutex>& lock) {
  while (direction.completions == 0) {
    if (std::exchange(direction.interrupted, false)) return false;
    throwIfException();
    direction.changed.wait_for(lock, guarded_.slice());
    if (direction.completions > 0) break;
    lock.unlock();
    check_while_waiting(direction);
    // Looked for before the completions: what a peer sent has arrived before its connection is seen to close.
    const auto lost = why_lost();
    lock.lock();
    if (lost != nullptr && direction.completions == 0) std::rethrow_exception(lost);
  }
  --direction.completions;
  return true;
}

bool GuardedBuffer::waitRecv(int* rank, std::chrono::milliseconds /*timeout*/) {
  std::unique_lock lock(m_);
  if (!wait(receiving(), lock)) return false;
  if (rank != nullptr) *rank = recvRank_;
  return true;
}

bool GuardedBuffer::waitSend(int* rank, std::chrono::milliseconds /*timeout*/) {
  std::unique_lock lock(m_);
  if (!wait(sending(), lock)) return false;
  if (rank != nullptr) *rank = sendRank_;
  return true;
}

bool GuardedBuffer::test(const Direction& direction) {
  const auto lost = why_lost();  // before the completions, as in wait()
  const std::lock_guard lock(m_);
  if (direction.completions == 0) {
    throwIfException();
    if (lost != nullptr) std::rethrow_exception(lost);
    return false;
  }
  --direction.completions;
  return true;
}

std::optional<int> GuardedBuffer::test_recv() {
  return test(receiving()) ? std::optional(recvRank_) : std::nullopt;
}
std::optional<int> GuardedBuffer::test_send() {
  return test(sending()) ? std::optional(sendRank_) : std::nullopt;
}

}  // namespace col::gloo_backend

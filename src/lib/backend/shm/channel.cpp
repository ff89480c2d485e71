#include "backend/shm/channel.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/factories.hpp"
#include "backend/shm/segment/connect.hpp"
#include "backend/shm/segment/doorbell.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "core/clock/clock.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

// How often a waiting rank looks before it lets others run, and how often it does that before it sleeps. Most messages
// between running ranks come within the first few microseconds; where ranks share a processor, only a yield lets the
// sender run; and going to sleep and being woken costs more than either.
constexpr int kSpins = 50;
constexpr int kYields = 100;
// How long a rank keeps its processor while it waits for a rank of another host, if no neighbour may run on it: about
// as long as the fastest answer takes. A host may be a container beside others, whose ranks are told to use the same
// processors. A yield does not give them this one: the scheduler divides it among sessions and control groups first.
constexpr auto kFarKeepingTime = std::chrono::microseconds(20);
// How long it sleeps at most while it has started collectives, which it moves on between two sleeps.
constexpr Duration kBetweenCollectives = std::chrono::microseconds(50);
// Tickets of collectives have this bit. Those of messages are numbered from below.
constexpr std::uint64_t kNativeTicket = std::uint64_t{1} << 63;

std::unique_ptr<Channel> make_channel(const std::shared_ptr<Segment>& segment, const ConnectRequest& request,
                                      std::optional<std::uint32_t> quota = std::nullopt) {
  try {
    return std::make_unique<ShmChannel>(std::string(request.group), request.rank, segment, quota, Names(request.peers));
  } catch (const std::bad_alloc&) {
    const Error error(ErrorCode::resource, "shm: out of memory while connecting; free some, or raise the limit",
                      std::string(request.group));
    segment->abort(Names(request.peers).of(request.rank), error);  // others may use it already
    throw error;
  }
}

std::string what_is_awaited(bool sending, int peer) {
  if (sending) return fmt::format("rank {} to receive what was sent to it", peer);
  if (peer == kAnyPeer) return "data from any rank";
  return fmt::format("data from rank {}", peer);
}

}  // namespace

ShmChannel::ShmChannel(std::string group, int rank, std::shared_ptr<Segment> segment,
                       std::optional<std::uint32_t> quota, Names names)
    : Channel({.immediate = this,
               .prepares = this,
               .parts = this,
               .allocation = this,
               .common_memory = this,
               .reasons = this,
               .near = this}),
      group_(std::move(group)),
      rank_(rank),
      names_(std::move(names)),
      segment_(std::move(segment)),
      engine_(*segment_, rank, names_),
      heap_(group_, rank, segment_->size()),
      collectives_(group_, *segment_, heap_, rank, *this) {
  if (quota) segment_->tell_processors(rank, quota);
}

ShmChannel::~ShmChannel() {
  if (fork_guard_.is_forked_child()) return;
  if (!collectives_.is_idle()) collectives_.give_up();
  // Pairs with who_left(): a rank that sees this also sees all frames from before. seq_cst, because the doorbells are
  // read next (doorbell.hpp).
  segment_->place(rank_).left.store(1, std::memory_order_seq_cst);
  for (int other = 0; other < segment_->size(); ++other) Doorbell(segment_->place(other).doorbell).ring();
}

void ShmChannel::enter(const char* call) const {
  if (fork_guard_.is_forked_child()) backend::throw_forked(call, group_);
  cause_.check(call, group_);
}

Operation& ShmChannel::find(Ticket ticket) {
  if (Operation* const operation = engine_.find(ticket)) return *operation;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("shm: ticket {:#x} is not in use; a ticket ends when test() returns a peer, or wait() returns",
                  ticket.id),
      group_);
}

// Ends the group for all ranks: peers that wait for this rank learn about it at once.
void ShmChannel::fail(const Error& error) {
  const Error named(error.code(), error.message(), error.group().empty() ? group_ : error.group(), error.rank(),
                    error.world_rank(), error.is_loss());
  abort(named);
  throw named;
}

template <class Body>
auto ShmChannel::guarded(Body body) {
  try {
    return body();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::resource,
               "shm: out of memory for messages that came before their receive; free some, or receive sooner"));
  }
}

// The number of the collective that a ticket is for; nothing if it is for a message.
std::optional<std::uint64_t> ShmChannel::native_number(Ticket ticket) const {
  const std::uint64_t number = ticket.id & ~kNativeTicket;
  if (number == ticket.id || !collectives_.has_started(number)) return std::nullopt;
  return number;
}

template <class Body>
auto ShmChannel::natively(const char* call, Body body) {
  try {
    enter(call);
    return guarded([&] {
      try {
        return body();
      } catch (const Error&) {
        throw;
      } catch (...) {  // from a user's function: the others must not wait for this rank
        abort(Error(ErrorCode::internal, "a reduction of the user's threw an exception", group_));
        throw;
      }
    });
  } catch (...) {
    if (!fork_guard_.is_forked_child()) collectives_.give_up();
    throw;
  }
}

Ticket ShmChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  enter("post_send");
  backend::check_peer("post_send", peer, rank_, segment_->size(), group_);
  return guarded(
      [&] { return Ticket{engine_.send(peer, slot, static_cast<const std::byte*>(data.data), data.bytes()).ticket}; });
}

bool ShmChannel::send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept {
  return is_usable() && engine_.send_immediate(peer, slot, static_cast<const std::byte*>(data.data), data.bytes());
}

bool ShmChannel::receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept {
  if (!is_usable()) return false;
  for (int i = 0; i < kSpins; ++i) {
    if (engine_.receive_immediate(peer, slot, static_cast<std::byte*>(data.data), data.bytes())) return true;
    pause_briefly();
  }
  return false;
}

class ShmChannel::Prepared final : public backend::PreparedNative {
 public:
  Prepared(ShmChannel& channel, const Collectives::Prepared& call) : channel_(channel), call_(call) {}

  bool begin() noexcept override { return channel_.is_usable() && channel_.collectives_.begin(call_); }
  bool end() noexcept override { return channel_.collectives_.end(call_); }
  Ticket start() override {
    return channel_.natively("native", [&] { return Ticket{kNativeTicket | channel_.collectives_.start(call_)}; });
  }

 private:
  ShmChannel& channel_;
  const Collectives::Prepared call_;
};

std::unique_ptr<backend::PreparedNative> ShmChannel::prepare(const Request& request) {
  enter("prepare");
  const auto call = collectives_.prepare(request);
  return call ? std::make_unique<Prepared>(*this, *call) : nullptr;
}

Ticket ShmChannel::post_filling_send(int peer, std::uint64_t slot, ConstTensorView data,
                                     std::function<std::uint64_t()> filled) {
  enter("post_filling_send");
  backend::check_peer("post_filling_send", peer, rank_, segment_->size(), group_);
  return guarded([&] {
    return Ticket{
        engine_.send(peer, slot, static_cast<const std::byte*>(data.data), data.bytes(), std::move(filled)).ticket};
  });
}

Ticket ShmChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  enter("post_recv");
  if (peer != kAnyPeer || segment_->size() == 1)
    backend::check_peer("post_recv", peer, rank_, segment_->size(), group_);
  return guarded(
      [&] { return Ticket{engine_.receive(peer, slot, static_cast<std::byte*>(data.data), data.bytes()).ticket}; });
}

std::optional<int> ShmChannel::test(Ticket ticket) {
  if (const auto number = native_number(ticket)) {
    return natively("test", [&]() -> std::optional<int> {
      attend();
      collectives_.move_on();
      if (!collectives_.has_ended(*number)) return std::nullopt;
      return rank_;
    });
  }
  enter("test");
  Operation& operation = find(ticket);
  return guarded([&]() -> std::optional<int> {
    if (!operation.done() && !step(operation)) return std::nullopt;
    return finish(operation);
  });
}

int ShmChannel::wait(Ticket ticket, WaitContext& wait) {
  if (const auto number = native_number(ticket)) {
    return natively("wait", [&] {
      collectives_.wait(*number, wait);
      return rank_;
    });
  }
  enter("wait");
  Operation& operation = find(ticket);
  return guarded([&] {
    wait_until_done(operation, wait);
    return finish(operation);
  });
}

int ShmChannel::finish(Operation& operation) noexcept {
  const int peer = operation.peer;
  engine_.remove(operation);
  return peer;
}

// Pairs with the destructor. seq_cst, as it is the last look of a rank that goes to sleep (doorbell.hpp).
bool ShmChannel::is_left(int rank) const noexcept {
  return segment_->place(rank).left.load(std::memory_order_seq_cst) != 0;
}

// The rank that `operation` waits for without success, because it has left; -1 if there is none.
int ShmChannel::who_left(const Operation& operation) const noexcept {
  if (operation.peer != kAnyPeer) return is_left(operation.peer) ? operation.peer : -1;
  int last = -1;
  for (int rank = 0; rank < segment_->size(); ++rank) {
    if (rank == rank_) continue;
    if (!is_left(rank)) return -1;
    last = rank;
  }
  return last;
}

void ShmChannel::throw_if_ended() const {
  if (cause_.is_set()) throw cause_.get();
  if (const auto error = segment_->abort_error()) throw *error;
}

// True when `operation` is done. Throws when it never will be.
bool ShmChannel::step(Operation& operation) {
  // Looked at before the rings: what a rank sent before it left is in them.
  const int gone = who_left(operation);
  engine_.progress();
  if (operation.done()) return true;
  throw_if_ended();
  if (!collectives_.is_idle()) natively("test", [&] { collectives_.move_on(); });
  if (gone < 0) return false;
  throw Error(ErrorCode::peer_lost,
              fmt::format("rank {} left the group while this rank waits for {}; every rank must make the same calls "
                          "before it destroys the group",
                          names_.of(gone), what_is_awaited(operation.sending, names_.of(operation.peer))),
              group_, names_.of(gone));
}

// Whether no other rank may run where this one does.
bool ShmChannel::keeps_processor() noexcept {
  if (!are_apart_ && segment_->processors()) are_apart_ = segment_->are_apart();
  return are_apart_.value_or(false);
}

// `polls`: before it sleeps, also where the awaited rank may have no other processor.
template <class Step, class Tell, class MaySleep>
void ShmChannel::wait_for(Step step, Tell tell, MaySleep may_sleep, bool polls, WaitContext& wait) {
  Doorbell doorbell(segment_->place(rank_).doorbell);
  // Returns whether it is there after all: a rank's end may be heard of before what it sent is looked at.
  const auto check = [&] {
    try {
      wait.check();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost || !step()) throw;
      return true;
    }
    return false;
  };
  bool told = false;
  for (;;) {
    for (int i = 0; i < (polls ? kSpins : 1); ++i) {
      if (step()) return;
      pause_briefly();
    }
    if (!std::exchange(told, true)) tell();
    const bool keeps = keeps_processor();
    const Duration keeping = polls ? Duration(kKeepingTime) : Duration(kFarKeepingTime);
    for (const auto until = core::Clock::now() + keeping; keeps && core::Clock::now() < until;) {
      if (check()) return;
      if (polls)
        pause_briefly();
      else
        core::yield();  // to the wire's thread
      if (step()) return;
    }
    if (const auto processors = segment_->processors()) yielding_.set_crowded(segment_->size() > *processors);
    for (int i = 0; polls && i < kYields; ++i) {
      if (check()) return;
      const bool pays = yielding_.yield();
      if (step()) return;
      if (!pays) break;
    }
    // Ranks that work on a collective do not ring for those that wait for a message.
    const Duration slice = wait.slice();
    const Duration at_most = collectives_.is_idle() ? slice : std::min<Duration>(slice, kBetweenCollectives);
    bool is_there = false;
    const auto look = [&] { return (is_there = step()) || !may_sleep(); };
    if (polls)
      doorbell.sleep_unless(look, at_most, wait);
    else
      doorbell.sleep_at_once_unless(look, at_most, wait);
    if (is_there || check()) return;
  }
}

void ShmChannel::wait_until_done(Operation& operation, WaitContext& wait) {
  if (operation.done()) return;
  const auto tell = [&] {
    const int peer = names_.of(operation.peer);
    wait.describe([sending = operation.sending, peer] { return what_is_awaited(sending, peer); });
    wait.waiting(-1, peer);
  };
  wait_for([&] { return step(operation); }, tell, [] { return true; }, true, wait);
}

// ---- As the near side of a group over hosts

void ShmChannel::progress() {
  enter("progress");
  guarded([&] { attend(); });
  if (!collectives_.is_idle()) natively("progress", [&] { collectives_.move_on(); });
}

backend::SideOps::Probed ShmChannel::probe(std::span<const int> peers, std::uint64_t slot, std::size_t /*bytes*/) {
  // Looked at before the rings, as in step().
  const bool all_left = std::all_of(peers.begin(), peers.end(), [this](int peer) { return is_left(peer); });
  progress();
  const int sender = engine_.sender_of_waiting(slot);
  return {sender, sender < 0 && all_left};
}

void ShmChannel::wait_until(const Awaited& awaited, WaitContext& wait) {
  enter("wait");
  const auto may_sleep = [&] { return awaited.may_sleep == nullptr || awaited.may_sleep(); };
  wait_for([&] { return awaited.look(); }, [&] { awaited.tell(wait); }, may_sleep, !awaited.from_far, wait);
}

void ShmChannel::ring() noexcept {
  Doorbell(segment_->place(rank_).doorbell).ring();
}

Ticket ShmChannel::start_native(const Request& request, WaitContext& /*wait*/) {
  return natively("native", [&] { return Ticket{kNativeTicket | collectives_.start(request)}; });
}

void ShmChannel::native(const Request& request, WaitContext& wait) {
  natively("native", [&] { collectives_.run(request, wait); });
}

std::string ShmChannel::how(const Request& request) const {
  const Tuning& tuning = segment_->tuning();
  return fmt::format("{} ({})", shm_backend::how(request, segment_->size(), tuning), in_words(tuning));
}

std::shared_ptr<void> ShmChannel::allocate(std::size_t bytes, const Exchange& exchange, WaitContext& /*wait*/) {
  enter("allocate");
  return heap_.allocate(bytes, exchange);
}

std::optional<backend::CommonMemoryOps::Reserved> ShmChannel::reserve(const ConnectRequest& request) {
  enter("plant");
  const auto segment = Segment::reserve(segment_, request.size, request.token);
  if (segment == nullptr) return std::nullopt;
  // Larger slots are taken when they are used, with an error if there is no room.
  segment->set_tuning(decide_as(segment_->tuning(), {.size = request.size,
                                                     .processors = segment_->processors().value_or(1),
                                                     .small_slot = segment->small_slot_bytes(),
                                                     .largest_slot = segment->area().slot_bytes(),
                                                     .cache_bytes = Area::cache_bytes(),
                                                     .last_caches = segment_->tuning().streamed}));
  const std::uint64_t place = segment->place_in_pool();
  return Reserved{place, make_channel(segment, request, segment_->quota_of(rank_))};
}

std::unique_ptr<Channel> ShmChannel::open(std::uint64_t place, const ConnectRequest& request) {
  enter("open");
  return make_channel(Segment::open(segment_, place, request.size, request.token), request, segment_->quota_of(rank_));
}

std::optional<int> ShmChannel::post_farewell(std::string_view words) {
  if (fork_guard_.is_forked_child()) return std::nullopt;
  return segment_->post_farewell(rank_, words);
}

// What a rank owes the others while it waits in a collective: its messages, and a look at whether the group has ended.
void ShmChannel::attend() {
  engine_.progress();
  throw_if_ended();
}

void ShmChannel::abort(const Error& cause) noexcept {
  if (fork_guard_.is_forked_child()) return;
  cause_.set(cause);
  segment_->abort(names_.of(rank_), cause);
}

// ---- The factory

namespace {

class Factory final : public BackendFactory {
 public:
  std::string_view name() const override { return "shm"; }

  std::optional<std::string> unavailable_reason() const override {
    if (make_memfd()) return std::nullopt;
    const int error = errno;
    const Places places;
    if (::access(places.files.c_str(), W_OK | X_OK) == 0) return std::nullopt;
    return fmt::format("memfd_create fails ({}), and {} cannot be written ({})", std::generic_category().message(error),
                       places.files, std::generic_category().message(errno));
  }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    const TuningSettings settings = TuningSettings::of_environment();
    const auto segment = connect_segment(request, wait, local_, {}, [&](const Segment& made, int processors) {
      return decide(shape_of(made, processors), settings);
    });
    if (request.rank == 0) core::log::info("group '{}': {}", request.group, in_words(segment->tuning()));
    return make_channel(segment, request);
  }

  std::string describe(const ConnectRequest& request) const override {
    return fmt::format("{} KiB of shared memory, rings of {} KiB", Segment::first_bytes_for(request.size) >> 10,
                       Segment::ring_bytes_for(request.size) >> 10);
  }

 private:
  LocalSegments local_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_factory() {
  return std::make_unique<Factory>();
}

}  // namespace col::shm_backend

#include "core/trace/trace.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/trace.hpp>

#include "core/blocked_signal.hpp"
#include "core/byte_size.hpp"
#include "core/clock/clock.hpp"
#include "core/env.hpp"
#include "core/job/record_words.hpp"
#include "core/log.hpp"
#include "core/trace/clock_moment.hpp"
#include "core/unique_fd.hpp"

namespace col::core {
namespace {

// Text for one event, as it was seen in files: a call with its arguments, and its part of the arrows.
constexpr std::uint64_t kTextBytes = 192;
constexpr std::uint64_t kLeastEvents = 16 * kTraceChunk, kMostEvents = std::uint64_t{1} << 18;
// Ticks after which the two clocks are compared again: about a tenth of a second.
constexpr std::uint64_t kPairAfter = 1 << 28;

std::uint64_t pack_names(const TracedCall& call) noexcept {
  return pack(static_cast<std::uint32_t>(call.rank), static_cast<std::uint32_t>(call.group) << 16 | call.algorithm);
}

std::uint64_t pack_call(const TracedCall& call, TraceKind kind) noexcept {
  return call.sequence << 16 | static_cast<std::uint64_t>(kind) << 8 | static_cast<std::uint64_t>(call.op);
}

constexpr std::size_t kHeadBytes = offsetof(TraceHeader, names) + 4096;

// Returns the error; 0: there is room.
int take_room(int fd, std::size_t offset, std::size_t bytes) noexcept {
  const BlockedSignal too_long(SIGXFSZ);  // EFBIG says it
  int error = 0;
  while ((error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes))) == EINTR) {
  }
  return error;
}

// The job that this process is part of, and where COL_TRACE says: never destroyed, for a process that ends.
struct Place {
  std::mutex mutex;
  std::string job, file;
  int written = 0;
  pid_t process = ::getpid();

  static Place& instance() {
    static auto* const place = new Place;
    return *place;
  }
};

}  // namespace

bool TraceClock::is_counter() noexcept {
#if defined(__x86_64__)
  std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return static_cast<bool>(source >> name) && name == "tsc";
#else
  return false;
#endif
}

std::atomic<Trace*> Trace::on_{nullptr};

std::uint64_t Trace::events_in(std::uint64_t bytes, int ranks) noexcept {
  const std::uint64_t each = bytes / kTextBytes / static_cast<std::uint64_t>(std::max(ranks, 1));
  return std::clamp(each / kTraceChunk * kTraceChunk, kLeastEvents, kMostEvents);
}

Trace::Trace(std::uint64_t capacity, const std::string& file)
    : capacity_(capacity), by_counter_(TraceClock::is_counter()) {
  const std::size_t bytes = sizeof(TraceHeader) + capacity * sizeof(TraceEvent);
  const auto fail = [&](int error) {
    throw Error(error == ENOENT || error == EACCES || error == EEXIST ? ErrorCode::io : ErrorCode::resource,
                fmt::format("no room for a trace of {} events{} ({}); ask for a smaller one with COL_TRACE_LIMIT or "
                            "--trace-limit",
                            capacity, file.empty() ? "" : " in " + file, std::generic_category().message(error)));
  };
  UniqueFd fd;
  if (!file.empty()) {
    fd.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) fail(errno);
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fail(errno);
    // On a full disk a hole would end the process. Most names never come: they get their place when they do.
    if (const int error = take_room(fd.get(), 0, kHeadBytes); error != 0) fail(error);
    if (const int error = take_room(fd.get(), sizeof(TraceHeader), bytes - sizeof(TraceHeader)); error != 0)
      fail(error);
  }
  const int flags = file.empty() ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd ? fd.get() : -1, 0);
  if (address == MAP_FAILED) fail(errno);
  header_ = static_cast<TraceHeader*>(address);
  events_ = reinterpret_cast<TraceEvent*>(static_cast<std::byte*>(address) + sizeof(TraceHeader));
  // All pages now, and none while calls are made. Older kernels do not know it.
  ::madvise(static_cast<std::byte*>(address) + sizeof(TraceHeader) / 4096 * 4096, capacity * sizeof(TraceEvent),
            23 /* MADV_POPULATE_WRITE */);
  TraceHeader& header = *header_;
  header.version.store(kTraceVersion, std::memory_order_relaxed);
  header.by_counter.store(by_counter_ ? 1 : 0, std::memory_order_relaxed);
  header.capacity.store(capacity, std::memory_order_relaxed);
  header.pid.store(static_cast<std::uint64_t>(::getpid()), std::memory_order_relaxed);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  header.host.store(host);
  const auto first = ClockMoment::now(by_counter_);
  first.store_in(header.first);
  header.real_ns.store(first.ns + real_minus_monotonic_ns(), std::memory_order_relaxed);
  note_time();
  Names::listen(
      [&header, file = std::make_shared<UniqueFd>(std::move(fd))](std::uint16_t number, const std::string& name) {
        auto& place = header.names[number];
        const auto offset = reinterpret_cast<std::byte*>(&place) - reinterpret_cast<std::byte*>(&header);
        if (!*file || take_room(file->get(), static_cast<std::size_t>(offset), sizeof place) == 0) place.store(name);
      });
  header.magic.store(kTraceMagic, std::memory_order_release);  // for readers: all above is there
}

void Trace::start(std::uint64_t most_events, const std::string& file) {
  static std::mutex starting;
  const std::lock_guard lock(starting);
  if (on() != nullptr) return;
  // Never freed: a call that has begun while it was on may still write to it.
  static auto* const all = new std::vector<Trace*>;
  all->push_back(nullptr);
  all->back() = new Trace(std::max(most_events / kTraceChunk, std::uint64_t{1}) * kTraceChunk, file);
  on_.store(all->back(), std::memory_order_release);
}

Trace* Trace::stop() noexcept {
  Trace* const ended = on_.exchange(nullptr, std::memory_order_acq_rel);
  if (ended == nullptr) return nullptr;
  ended->note_time();
  return ended;
}

void Trace::note_time() noexcept {
  ClockMoment::now(by_counter_).store_in(header_->last);
}

TraceEvent* Trace::next(Cursor& cursor) noexcept {
  // A writer that has written nothing for long gives up what others may have by now.
  const std::uint64_t claimed = header_->claimed.load(std::memory_order_relaxed);
  if (cursor.of != this || cursor.next == cursor.end || claimed - cursor.next >= capacity_ - kTraceChunk) {
    cursor.of = this;
    cursor.next = header_->claimed.fetch_add(kTraceChunk, std::memory_order_relaxed);
    cursor.end = cursor.next + kTraceChunk;
    if (ticks() - header_->last.ticks.load(std::memory_order_relaxed) > kPairAfter) note_time();
  }
  return &events_[cursor.next++ % capacity_];
}

void Trace::add(Cursor& cursor, const TracedCall& call) noexcept {
  const std::uint64_t end = ticks();
  TraceEvent& event = *next(cursor);
  event.written.store(0, std::memory_order_relaxed);
  event.begin.store(call.begin, std::memory_order_release);
  event.end.store(end, std::memory_order_release);
  event.call.store(pack_call(call, call.kind), std::memory_order_release);
  event.partner_and_tag.store(pack_partner(call.details), std::memory_order_release);
  event.elements.store(pack_elements(call.details), std::memory_order_release);
  event.rank_and_names.store(pack_names(call), std::memory_order_release);
  event.number_and_reduction.store(call.number << 8 | call.details.reduction, std::memory_order_release);
  event.written.store(cursor.next, std::memory_order_release);
}

void Trace::add_step(Cursor& cursor, const TracedCall& call, const TracedStep& step) noexcept {
  const std::uint64_t end = ticks();
  TraceEvent& event = *next(cursor);
  event.written.store(0, std::memory_order_relaxed);
  event.begin.store(step.begin, std::memory_order_release);
  event.end.store(end, std::memory_order_release);
  event.call.store(pack_call(call, TraceKind::step), std::memory_order_release);
  event.partner_and_tag.store(pack(static_cast<std::uint32_t>(step.peer), static_cast<std::uint32_t>(step.round)),
                              std::memory_order_release);
  event.elements.store(static_cast<std::uint64_t>(step.kind) << 56 | (step.bytes & ((std::uint64_t{1} << 56) - 1)),
                       std::memory_order_release);
  event.rank_and_names.store(pack_names(call), std::memory_order_release);
  event.number_and_reduction.store(step.index << 8, std::memory_order_release);
  event.written.store(cursor.next, std::memory_order_release);
}

namespace {

void write_at_exit() noexcept {
  if (::getpid() != Place::instance().process) return;  // a forked child has what is its parent's
  try {
    end_trace(Place::instance().file);
  } catch (const std::exception& error) {
    log::warn("no trace: {}", error.what());
  }
}

}  // namespace

std::string Trace::next_file_key() {
  Place& place = Place::instance();
  const std::lock_guard lock(place.mutex);
  return fmt::format("{}#{}", place.job, ++place.written);
}

void Trace::start_from_environment(int rank, int ranks, const std::string& job) noexcept {
  try {
    Place& place = Place::instance();
    // A process alone is no job that others could be part of.
    place.job = ranks > 1 ? job : fmt::format("{}-{}", ::getpid(), clock_ns());
    const auto directory = env::get("COL_TRACE_DIRECTORY");
    const auto file = env::get("COL_TRACE");
    if (!directory && !file) return;
    std::uint64_t bytes = kTraceBytes;
    if (const auto limit = env::get("COL_TRACE_LIMIT")) {
      const auto parsed = parse_bytes(*limit);
      if (!parsed || *parsed == 0)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("COL_TRACE_LIMIT is '{}'; it takes a size such as 256M", *limit));
      bytes = *parsed;
    }
    start(events_in(bytes, ranks), directory ? fmt::format("{}/{}", *directory, rank) : "");
    if (directory) return;
    place.file = *file;
    std::atexit(write_at_exit);
  } catch (const std::exception& error) {
    log::warn("no trace: {}", error.what());
  }
}

}  // namespace col::core

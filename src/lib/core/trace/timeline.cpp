// The public side of traces: <col/trace.hpp>.
#include <col/trace.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/trace/trace.hpp"
#include "core/trace/traced_events.hpp"
#include "core/unique_fd.hpp"

namespace col {
namespace {

using core::TracedEvents;

constexpr std::string_view kPackMagic = "coltrac1";
// A part is written in moments; a process that was stopped meanwhile must not hold up the others for ever.
constexpr Duration kLockTime = std::chrono::seconds(30);

[[noreturn]] void throw_io(int error, const char* action, const std::string& path) {
  const bool exhausted = error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
  throw Error(exhausted ? ErrorCode::resource : ErrorCode::io,
              fmt::format("cannot {} '{}' ({}); name another file for the trace", action, path,
                          std::generic_category().message(error)));
}

[[noreturn]] void throw_no_trace(const std::string& what) {
  throw Error(ErrorCode::mismatch,
              fmt::format("{} is no trace of this release of col; use one release in a job", what));
}

// The times of a file are since then: a little before its first event, as others may add some.
std::int64_t first_begin(const TracedEvents& all) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const core::TracedEvent& event : all.events) first = std::min(first, event.begin_ns);
  return all.events.empty() ? 0 : first;
}

// ---- The file of several processes, each of which adds its part

void lock(int fd, const std::string& path) {
  for (const Deadline deadline = Deadline::after(kLockTime); ::flock(fd, LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_io(errno, "lock", path);
    if (deadline.expired()) throw_io(EWOULDBLOCK, "lock", path);
    core::sleep_for(std::chrono::milliseconds(2));  // flock() has no deadline of its own
  }
}

void write_at(int fd, off_t offset, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd, text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_io(errno, "write", path);
    offset += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// When the file begins, if it is one of this job that ends as it should; else nothing.
std::optional<std::int64_t> begin_of(int fd, off_t size, std::string_view key) {
  constexpr std::string_view kBegins = "\"begins_ns\":\"";
  char head[1024] = {}, tail[core::kChromeTail.size()] = {};
  const ssize_t read = ::pread(fd, head, sizeof head - 1, 0);
  const auto tail_bytes = static_cast<off_t>(sizeof tail);
  if (read <= 0 || size < tail_bytes || ::pread(fd, tail, sizeof tail, size - tail_bytes) != tail_bytes) return {};
  const std::string_view text(head, static_cast<std::size_t>(read));
  const std::string job = "{\"otherData\":{\"job\":" + core::json_text(key) + ",";
  const std::size_t at = text.find(kBegins);
  if (!text.starts_with(job) || at == text.npos || std::string_view(tail, sizeof tail) != core::kChromeTail) return {};
  std::int64_t begins = 0;
  const char* const first = head + at + kBegins.size();
  if (std::from_chars(first, head + read, begins).ec != std::errc()) return {};
  return begins;
}

}  // namespace

void start_trace(std::uint64_t most_bytes) {
  core::Trace::start(core::Trace::events_in(most_bytes, 1));
}

bool end_trace(const std::string& path) {
  const core::Trace* const trace = core::Trace::stop();
  if (trace == nullptr) return false;
  TracedEvents all;
  core::add_events(all, trace->header(), trace->events());
  const std::string key = core::Trace::next_file_key();
  const core::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) throw_io(errno, "open", path);
  lock(fd.get(), path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_io(errno, "read", path);
  const auto real = [&](std::int64_t ns) { return ns + all.real_minus_monotonic_ns; };
  std::int64_t base_ns = first_begin(all);
  off_t offset = 0;
  std::string text;
  if (const auto begins = begin_of(fd.get(), status.st_size, key)) {
    base_ns = *begins - all.real_minus_monotonic_ns;
    offset = status.st_size - static_cast<off_t>(core::kChromeTail.size());
    text = ",\n";
  } else {
    if (::ftruncate(fd.get(), 0) != 0) throw_io(errno, "write", path);
    // Others may have begun before this one.
    base_ns -= 1'000'000'000;
    text = core::chrome_head(key, real(base_ns), all);
  }
  const std::string events = core::chrome_events(all, base_ns, std::numeric_limits<std::uint64_t>::max());
  if (events.empty()) return true;
  text += events;
  text += core::kChromeTail;
  write_at(fd.get(), offset, text, path);
  return true;
}

// ---- Timeline

struct Timeline::Impl {
  TracedEvents all;
};

Timeline::Timeline() : impl_(std::make_unique<Impl>()) {}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&& other) noexcept = default;
Timeline& Timeline::operator=(Timeline&& other) noexcept = default;

std::int64_t ClockShift::ahead_at(std::int64_t at_ns) const noexcept {
  if (last_at_ns <= first_at_ns) return first_ahead_ns;
  const double slope =
      static_cast<double>(last_ahead_ns - first_ahead_ns) / static_cast<double>(last_at_ns - first_at_ns);
  return first_ahead_ns + static_cast<std::int64_t>(slope * static_cast<double>(at_ns - first_at_ns));
}

std::size_t Timeline::events() const noexcept {
  return impl_->all.events.size();
}

void Timeline::add_file(const std::string& path) {
  const core::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) throw_io(errno, "read", path);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < sizeof(core::TraceHeader)) throw_no_trace(path);
  void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) throw_io(errno, "map", path);
  const auto unmap = [bytes](void* mapped) { ::munmap(mapped, bytes); };
  const std::unique_ptr<void, decltype(unmap)> mapping(address, unmap);
  const auto& header = *static_cast<const core::TraceHeader*>(address);
  const std::uint64_t capacity = header.capacity.load(std::memory_order_relaxed);
  const std::size_t room = (bytes - sizeof header) / sizeof(core::TraceEvent);
  // A process that was killed before it had made the whole.
  if (header.magic.load(std::memory_order_acquire) == 0) return;
  if (header.magic.load(std::memory_order_acquire) != core::kTraceMagic ||
      header.version.load(std::memory_order_relaxed) != core::kTraceVersion || capacity != room)
    throw_no_trace("'" + path + "'");
  core::add_events(impl_->all, header,
                   reinterpret_cast<const core::TraceEvent*>(static_cast<const std::byte*>(address) + sizeof header));
}

namespace {

template <class T>
void put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

class Unpacker {
 public:
  explicit Unpacker(std::string_view packed) : rest_(packed) {}

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return bytes(take<std::uint32_t>()); }
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) throw_no_trace("what another host has sent");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

void Timeline::shift(const ClockShift& clock) {
  TracedEvents& all = impl_->all;
  for (core::TracedEvent& event : all.events) {
    event.begin_ns -= clock.ahead_at(event.begin_ns);
    event.end_ns = std::max(event.begin_ns, event.end_ns - clock.ahead_at(event.end_ns));
  }
  for (core::TracedProcess& process : all.processes) process.error_ns += clock.error_ns;
  if (all.real_minus_monotonic_ns != 0) all.real_minus_monotonic_ns += clock.first_ahead_ns;
}

std::vector<std::string> Timeline::pack(std::size_t most_bytes) const {
  const TracedEvents& all = impl_->all;
  std::string head(kPackMagic);
  put(head, all.real_minus_monotonic_ns);
  put(head, static_cast<std::uint32_t>(all.names.size()));
  for (const std::string& name : all.names) put_text(head, name);
  const std::size_t most = std::max<std::size_t>(most_bytes / sizeof(core::TracedEvent), 1);
  std::vector<std::string> parts;
  std::size_t first = 0;
  do {
    std::string part = head;
    // Processes are in the first part alone.
    const std::size_t processes = first == 0 ? all.processes.size() : 0;
    put(part, static_cast<std::uint32_t>(processes));
    for (std::size_t i = 0; i < processes; ++i) {
      const core::TracedProcess& process = all.processes[i];
      put(part, process.rank);
      put(part, process.pid);
      put(part, process.error_ns);
      put_text(part, process.host);
    }
    const std::size_t count = std::min(most, all.events.size() - first);
    put(part, static_cast<std::uint64_t>(count));
    for (std::size_t i = first; i < first + count; ++i) put(part, all.events[i]);
    parts.push_back(std::move(part));
    first += count;
  } while (first < all.events.size());
  return parts;
}

void Timeline::add_packed(std::string_view packed) {
  Unpacker from(packed);
  if (from.bytes(kPackMagic.size()) != kPackMagic) throw_no_trace("what another host has sent");
  TracedEvents& all = impl_->all;
  const auto real_minus_monotonic_ns = from.take<std::int64_t>();
  if (all.real_minus_monotonic_ns == 0) all.real_minus_monotonic_ns = real_minus_monotonic_ns;
  std::vector<std::uint32_t> names;
  for (auto left = from.take<std::uint32_t>(); left > 0; --left) names.push_back(all.name(from.text()));
  for (auto left = from.take<std::uint32_t>(); left > 0; --left) {
    core::TracedProcess process;
    process.rank = from.take<std::int32_t>();
    process.pid = from.take<std::uint64_t>();
    process.error_ns = from.take<std::uint64_t>();
    process.host = from.text();
    all.processes.push_back(std::move(process));
  }
  for (auto left = from.take<std::uint64_t>(); left > 0; --left) {
    auto event = from.take<core::TracedEvent>();
    for (std::uint32_t* name : {&event.group, &event.algorithm, &event.label}) {
      if (*name >= names.size()) throw_no_trace("what another host has sent");
      *name = names[*name];
    }
    all.events.push_back(event);
  }
  if (!from.is_empty()) throw_no_trace("what another host has sent");
}

std::string Timeline::json(std::string_view job_id, std::uint64_t most_bytes) const {
  const TracedEvents& all = impl_->all;
  const std::int64_t base_ns = first_begin(all);
  std::string text = core::chrome_head(job_id, base_ns + all.real_minus_monotonic_ns, all);
  const std::uint64_t around = text.size() + core::kChromeTail.size();
  text += core::chrome_events(all, base_ns, most_bytes - std::min(most_bytes, around));
  text += core::kChromeTail;
  return text;
}

}  // namespace col

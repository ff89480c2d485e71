#include "core/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string_view>

#include <col/job.hpp>

#include "core/fork_guard.hpp"
#include "core/unique_fd.hpp"

namespace col::core {
namespace {

constexpr std::size_t kShort = std::size_t{64} << 10;  // a look is nothing beside a call of more bytes
constexpr std::size_t kRemembered = 256;
constexpr int kTimeShift = 17;
constexpr int kTimeBits = 19;  // what a number of a page, which has 45 bits at most, leaves of a word

std::uintptr_t page_of(const void* data) noexcept {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return reinterpret_cast<std::uintptr_t>(data) / kPage;
}

// In units of 0.13 ms: for so long at most a page is taken for what it was, as another mapping may come to its place.
std::uint64_t time_now() noexcept {
  const auto since = Deadline::Clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count()) >> kTimeShift;
}

// Opened once in each process: in a forked child, the old one shows the parent's memory.
class PageMap {
 public:
  // 0: it does not tell, or the page has not been touched.
  std::uint64_t entry(std::uintptr_t page) const noexcept {
    std::uint64_t entry = 0;
    const auto at = static_cast<off_t>(page * sizeof entry);
    return fd_ && ::pread(fd_.get(), &entry, sizeof entry, at) == sizeof entry ? entry : 0;
  }
  static const PageMap& get() noexcept {
    static std::atomic<const PageMap*> current{new PageMap};
    // acquire pairs with the exchange: what another thread has opened.
    const PageMap* now = current.load(std::memory_order_acquire);
    if (!now->guard_.is_forked_child()) [[likely]]
      return *now;
    auto* const own = new PageMap;  // never freed: threads may look at any time
    if (current.compare_exchange_strong(now, own, std::memory_order_acq_rel)) return *own;
    delete own;
    return *now;
  }

 private:
  ForkGuard guard_;
  UniqueFd fd_{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
};

// Ray's file has a name such as /dev/shm/plasmaXXXXXX, and no longer a place in its directory.
bool is_of_ray(std::string_view mapping) noexcept {
  const std::size_t name = mapping.rfind('/');
  return name != mapping.npos && mapping.substr(name).starts_with("/plasma") && mapping.ends_with(" (deleted)\n");
}

// The page can be written, now. False where the kernel is too old to tell (before Linux 5.14).
bool is_writable(std::uintptr_t address) noexcept {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return ::madvise(reinterpret_cast<void*>(address / kPage * kPage), kPage, kPopulateWrite) == 0;
}

// A mapping that is not Ray's. This thread takes it for what it was for a second: there are thousands where torch is
// loaded, and to read the lines of them takes milliseconds.
struct Known {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t read_at = 0;
};
constexpr std::size_t kKnown = 8;
constexpr std::uint64_t kTrusted = (std::uint64_t{1} << 30) >> kTimeShift;

// The mapping that has the address. Reads all before it: for memory that is not the program's own alone.
Writing look_up(std::uintptr_t address) noexcept {
  thread_local std::array<Known, kKnown> known;
  thread_local std::size_t next = 0;
  const std::uint64_t now = time_now();
  for (const Known& one : known) {
    if (address < one.begin || address >= one.end || now - one.read_at >= kTrusted) continue;
    if (is_writable(address)) return Writing::allowed;
  }
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> maps(std::fopen("/proc/self/maps", "re"));
  std::array<char, 512> line;
  while (maps != nullptr && std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
    std::uintptr_t begin = 0, end = 0;
    std::array<char, 5> rights = {};
    if (std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights.data()) != 3) continue;
    if (address < begin || address >= end) continue;
    if (rights[1] != 'w') return Writing::read_only;
    if (is_of_ray(line.data())) return Writing::of_ray;
    known[next++ % kKnown] = {begin, end, now};
    return Writing::allowed;
  }
  return Writing::allowed;
}

bool look(const void* data, std::uintptr_t page) noexcept {
  constexpr std::uint64_t kThere = std::uint64_t{3} << 62, kOfFile = std::uint64_t{1} << 61;
  std::uint64_t entry = PageMap::get().entry(page);
  if ((entry & kThere) == 0) {  // nobody has touched it
    static_cast<void>(*static_cast<const volatile char*>(data));
    entry = PageMap::get().entry(page);
  }
  return (entry & kOfFile) != 0;
}

}  // namespace

bool may_be_shared(const void* data, std::size_t bytes) noexcept {
  static std::array<std::atomic<std::uint64_t>, kRemembered> own_pages = {};
  const std::uintptr_t page = page_of(data);
  if (bytes > kShort) return look(data, page);
  std::atomic<std::uint64_t>& known = own_pages[page % kRemembered];
  const std::uint64_t now = page << kTimeBits | (time_now() & ((std::uint64_t{1} << kTimeBits) - 1));
  // relaxed: the number stands for itself.
  if (known.load(std::memory_order_relaxed) == now) return false;
  const bool is_shared = look(data, page);
  if (!is_shared) known.store(now, std::memory_order_relaxed);
  return is_shared;
}

Writing may_write(const void* data, std::size_t bytes) noexcept {
  if (!may_be_shared(data, bytes)) return Writing::allowed;
  return look_up(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace col::core

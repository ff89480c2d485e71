#include "core/job/page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/blocked_signal.hpp"
#include "core/clock/clock.hpp"
#include "core/hash.hpp"
#include "core/job/process.hpp"
#include "core/unique_fd.hpp"

namespace col::core {

namespace {

constexpr int kMaxLocalRanks = 1 << 16;

std::size_t page_size(std::size_t local_ranks) noexcept {
  return sizeof(PageHeader) + local_ranks * (sizeof(RecordLayout) + sizeof(RecorderLayout));
}

[[noreturn]] void throw_system_error(int error, const char* action, const std::string& path) {
  const bool exhausted =
      error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM || error == EMFILE || error == ENFILE;
  throw Error(exhausted ? ErrorCode::resource : ErrorCode::io,
              fmt::format("cannot {} control page '{}' ({}); {}, or name another file with COL_CONTROL", action, path,
                          std::generic_category().message(error),
                          exhausted ? "free space or descriptors there" : "check its directory and permissions"));
}

[[noreturn]] void throw_mismatch(const std::string& path, std::string_view problem) {
  throw Error(
      ErrorCode::mismatch,
      fmt::format("'{}' {}; remove it if no job uses it, or name another file with COL_CONTROL", path, problem));
}

void check_local_ranks(int local_ranks) {
  if (local_ranks >= 1 && local_ranks <= kMaxLocalRanks) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a control page for {} local ranks: use a number from 1 to {}", local_ranks, kMaxLocalRanks));
}

std::uint64_t hash_job(std::string_view job_id) noexcept {
  return Hash().add(job_id).value();
}

// Starts the life of the atomics in zeroed memory that no one else sees yet. Recorders are left as they are: they are
// large, and most of their pages are not needed at once.
void initialize(const PageMapping& page, void* address, int local_ranks, std::uint64_t job_hash) noexcept {
  auto* header = new (address) PageHeader{};
  for (int i = 0; i < local_ranks; ++i) new (page.record(i)) RecordLayout{};
  header->version.store(kPageVersion, std::memory_order_relaxed);
  header->local_ranks.store(static_cast<std::uint32_t>(local_ranks), std::memory_order_relaxed);
  header->job_hash.store(job_hash, std::memory_order_relaxed);
  const std::chrono::nanoseconds now = wall_now().time_since_epoch();
  header->made_ns.store(static_cast<std::uint64_t>(now.count()), std::memory_order_relaxed);
  header->maker.store(ProcessId::self().word(), std::memory_order_relaxed);
  header->magic.store(kPageMagic, std::memory_order_release);  // pairs with open_page_file: all above is there
}

void* map_shared(int fd, std::size_t size_bytes, const std::string& path) {
  void* address = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) throw_system_error(errno, "map", path);
  return address;
}

// A file beside its final path; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& final_path) {
    static std::atomic<unsigned> counter = 0;
    // Only a process of the same pid that was killed can have left the name; a few numbers further none has.
    for (int attempt = 0; attempt < 100; ++attempt) {
      path_ = fmt::format("{}.tmp.{}.{}", final_path, ::getpid(), counter.fetch_add(1, std::memory_order_relaxed));
      fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (fd_ || errno != EEXIST) break;
    }
    if (!fd_) throw_system_error(errno, "create", final_path);
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const noexcept { return fd_.get(); }

  // False when `path` exists and is to be kept.
  bool publish(const std::string& path, Publish how) {
    if (how == Publish::replace) {
      if (::rename(path_.c_str(), path.c_str()) != 0) throw_system_error(errno, "create", path);
      path_.clear();
      return true;
    }
    if (::link(path_.c_str(), path.c_str()) == 0) return true;  // the destructor removes the other name
    if (errno == EEXIST) return false;
    // File systems without hard links.
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
      path_.clear();
      return true;
    }
    if (errno == EEXIST) return false;
    throw_system_error(errno, "create", path);
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace

PageMapping::PageMapping(PageMapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_bytes_(other.size_bytes_) {}

PageMapping& PageMapping::operator=(PageMapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

PageMapping::~PageMapping() {
  if (address_ != nullptr) ::munmap(address_, size_bytes_);
}

PageHeader& PageMapping::header() const noexcept {
  return *static_cast<PageHeader*>(address_);
}

RecordLayout* PageMapping::record(int local_rank) const noexcept {
  auto* bytes = static_cast<std::byte*>(address_) + sizeof(PageHeader);
  return reinterpret_cast<RecordLayout*>(bytes) + local_rank;
}

RecorderLayout* PageMapping::recorder(int local_rank) const noexcept {
  // By the size, which no process can change under us.
  const std::size_t ranks = (size_bytes_ - sizeof(PageHeader)) / (sizeof(RecordLayout) + sizeof(RecorderLayout));
  auto* bytes = reinterpret_cast<std::byte*>(record(static_cast<int>(ranks)));
  return reinterpret_cast<RecorderLayout*>(bytes) + local_rank;
}

namespace {

// The file at `path`, which is empty and that only this process knows, becomes a page.
PageMapping make_page(int fd, const std::string& path, int local_ranks, std::string_view job_id) {
  const std::size_t size_bytes = page_size(static_cast<std::size_t>(local_ranks));
  // Space is taken now: on a full disk a hole would end the process with SIGBUS at its first write.
  int error = 0;
  {
    const BlockedSignal too_long(SIGXFSZ);  // EFBIG says it
    while ((error = ::posix_fallocate(fd, 0, static_cast<off_t>(size_bytes))) == EINTR) {
    }
  }
  if (error != 0) throw_system_error(error, "allocate", path);
  void* address = map_shared(fd, size_bytes, path);
  PageMapping page(address, size_bytes);
  initialize(page, address, local_ranks, hash_job(job_id));
  return page;
}

}  // namespace

std::optional<PageMapping> create_page_file(const std::string& path, int local_ranks, std::string_view job_id,
                                            Publish publish) {
  check_local_ranks(local_ranks);
  TemporaryFile file(path);
  PageMapping page = make_page(file.fd(), path, local_ranks, job_id);
  if (!file.publish(path, publish)) return std::nullopt;
  return page;
}

UniqueFd create_unnamed_page(int local_ranks, std::string_view job_id) {
  // What /proc/<pid>/fd and maps show: coljob finds it by that. The kernel takes no longer names than 249 bytes.
  constexpr std::size_t kMostBytes = 200;
  const std::string name = fmt::format("col-control:{}", job_id.substr(0, kMostBytes));
  check_local_ranks(local_ranks);
  UniqueFd file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file) throw_system_error(errno, "create", name);
  make_page(file.get(), name, local_ranks, job_id);
  return file;
}

std::optional<PageMapping> open_page_file(const std::string& path, std::string_view job_id) {
  auto page = open_any_page_file(path);
  if (page && page->header().job_hash.load(std::memory_order_relaxed) != hash_job(job_id))
    throw_mismatch(path, fmt::format("is the control page of another job than '{}'", job_id));
  return page;
}

std::optional<PageMapping> open_any_page_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));  // nonblocking, should it be a FIFO
  if (!fd) {
    if (errno == ENOENT) return std::nullopt;
    throw_system_error(errno, "open", path);
  }
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) throw_system_error(errno, "inspect", path);
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size_bytes < page_size(1) || size_bytes > page_size(kMaxLocalRanks))
    throw_mismatch(path, "is no control page of col");
  PageMapping page(map_shared(fd.get(), size_bytes, path), size_bytes);
  const PageHeader& header = page.header();
  if (header.magic.load(std::memory_order_acquire) != kPageMagic)  // pairs with initialize()
    throw_mismatch(path, "is no control page of col");
  if (const auto version = header.version.load(std::memory_order_relaxed); version != kPageVersion) {
    throw_mismatch(path, fmt::format("is a control page of another release of col (layout {}, this one has {})",
                                     version, kPageVersion));
  }
  const auto local_ranks = header.local_ranks.load(std::memory_order_relaxed);
  if (size_bytes != page_size(local_ranks)) throw_mismatch(path, "is a damaged control page");
  return page;
}

PageMapping create_anonymous_page(int local_ranks) {
  check_local_ranks(local_ranks);
  const std::size_t size_bytes = page_size(static_cast<std::size_t>(local_ranks));
  void* address = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw Error(ErrorCode::resource, fmt::format("no memory for a control page of {} local ranks ({}); free some",
                                                 local_ranks, std::generic_category().message(errno)));
  }
  PageMapping page(address, size_bytes);
  initialize(page, address, local_ranks, 0);
  return page;
}

}  // namespace col::core

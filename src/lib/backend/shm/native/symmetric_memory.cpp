#include "backend/shm/native/symmetric_memory.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/segment/connect.hpp"
#include "backend/shm/segment/memory_room.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "core/log.hpp"
#include "core/unique_fd.hpp"

namespace col::shm_backend {
namespace {

// What rank 0 offers, and what all answer.
constexpr std::string_view kMemfd = "memfd ", kFile = "file ", kNone = "none";
constexpr std::string_view kYes = "yes", kFull = "full ", kNo = "no ";

std::size_t page_bytes() noexcept {
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return kPage;
}

Error no_room(const std::string& why) {
  return Error(ErrorCode::resource, why);
}

}  // namespace

// In the first page of the file, which begins as zeros.
struct SymmetricMemory::Header {
  std::atomic<std::uint32_t> given_back;  // ranks
};

std::size_t SymmetricMemory::bytes_for(int size, std::size_t part_bytes) noexcept {
  return page_bytes() + static_cast<std::size_t>(size) * part_bytes;
}

SymmetricMemory::SymmetricMemory(int fd, int rank, int size, std::size_t part_bytes, std::uint64_t number)
    : rank_(rank), size_(size), part_bytes_(part_bytes), number_(number) {
  void* const address = ::mmap(nullptr, bytes_for(size, part_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    throw no_room(errno == ENOMEM ? "this process's address space or number of mappings is used up"
                                  : std::generic_category().message(errno));
  }
  base_ = static_cast<std::byte*>(address);
}

SymmetricMemory::~SymmetricMemory() {
  ::munmap(base_, bytes_for(size_, part_bytes_));
}

SymmetricMemory::Header& SymmetricMemory::header() const noexcept {
  return *reinterpret_cast<Header*>(base_);
}

std::byte* SymmetricMemory::part(int rank) const noexcept {
  return base_ + page_bytes() + static_cast<std::size_t>(rank) * part_bytes_;
}

void SymmetricMemory::claim() const {
  if (const auto lack = lack_of_memory(part_bytes_)) throw no_room(*lack);
  if (!can_populate()) return;  // then rank 0 has reserved all
  for (const auto& [begin, bytes] : {std::pair(base_, page_bytes()), std::pair(part(rank_), part_bytes_)}) {
    if (const auto problem = populate(begin, bytes)) throw no_room(*problem);
  }
}

void SymmetricMemory::enter_all() const noexcept {
  // Without it, the faults come later.
  if (can_populate()) static_cast<void>(populate(base_, bytes_for(size_, part_bytes_)));
}

void SymmetricMemory::detach() const noexcept {
  if (given_back_.load(std::memory_order_relaxed)) return;
  try {
    if (const auto lack = lack_of_memory(part_bytes_))
      return core::log::warn("no room to take shared memory back from the other ranks ({})", *lack);
  } catch (const std::exception&) {  // not even for the question
    return;
  }
  void* const copy = ::mmap(nullptr, part_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return core::log::warn("no memory to take shared memory back from the other ranks");
  std::memcpy(copy, part(rank_), part_bytes_);
  if (::mremap(copy, part_bytes_, part_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, part(rank_)) == MAP_FAILED)
    core::log::warn("cannot take shared memory back from the other ranks");
}

void SymmetricMemory::give_back() const noexcept {
  if (fork_guard_.is_forked_child()) return;
  given_back_.store(true, std::memory_order_relaxed);
  ::madvise(part(rank_), part_bytes_, MADV_REMOVE);  // the file lives as long as one rank maps it
  header().given_back.fetch_add(1, std::memory_order_relaxed);
}

bool SymmetricMemory::is_given_back() const noexcept {
  return header().given_back.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(size_);
}

std::optional<std::size_t> SymmetricMemory::offset_of(const void* memory, std::size_t bytes) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(memory), begin = reinterpret_cast<std::uintptr_t>(part(rank_));
  if (at < begin || at - begin > part_bytes_ || bytes > part_bytes_ - (at - begin)) return std::nullopt;
  return at - begin;
}

// What rank 0 keeps open until all have mapped it.
struct SymmetricHeap::Offer {
  core::UniqueFd memfd;
  std::unique_ptr<SharedFile> file;
  std::string words;
};

SymmetricHeap::SymmetricHeap(std::string group, int rank, int size)
    : group_(std::move(group)), rank_(rank), size_(size) {}

SymmetricHeap::Offer SymmetricHeap::make_offer(bool by_file, std::size_t part_bytes) const {
  Offer offer;
  try {
    const std::size_t bytes = SymmetricMemory::bytes_for(size_, part_bytes);
    int fd = -1;
    if (by_file) {
      offer.file = std::make_unique<SharedFile>(Places().files);
      fd = offer.file->fd();
      offer.words = fmt::format("{}{}", kFile, offer.file->path());
    } else {
      offer.memfd = make_memfd();
      fd = offer.memfd.get();
      offer.words = fmt::format("{}{} {}", kMemfd, ::getpid(), fd);
    }
    if (fd < 0) {
      offer.words = kNone;
    } else if (const auto lack = lack_of_memory(bytes)) {
      offer.words = fmt::format("{}{}", kFull, *lack);
    } else if (const auto problem = make_file(fd, bytes, can_populate() ? 0 : bytes)) {
      offer.words = fmt::format("{}{}", kFull, *problem);
    } else if (!by_file) {
      seal(fd);
      struct stat status {};
      if (::fstat(fd, &status) != 0) throw std::system_error(errno, std::generic_category());
      offer.words += fmt::format(" {} {}", status.st_dev, status.st_ino);
    }
  } catch (const std::exception&) {
    offer.words = kNone;
  }
  return offer;
}

// This rank's mapping of the offer; null if there is none, and `answer` then says why.
std::shared_ptr<SymmetricMemory> SymmetricHeap::accept(const std::string& offer, std::size_t part_bytes,
                                                       std::string& answer) const {
  try {
    std::istringstream words(offer);
    std::string kind, path;
    int pid = 0, number = 0;
    dev_t device = 0;
    ino_t file = 0;
    words >> kind;
    const bool by_number = offer.starts_with(kMemfd);
    if (by_number && words >> pid >> number >> device >> file) path = fmt::format("/proc/{}/fd/{}", pid, number);
    if (offer.starts_with(kFile)) path = offer.substr(kFile.size());
    const core::UniqueFd fd = open_regular_file(path);
    if (!fd) {
      answer = fmt::format("{}cannot open {}: {}", kNo, path, std::generic_category().message(errno));
      return nullptr;
    }
    // In another namespace of processes, that may be anybody's file.
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0 ||
        static_cast<std::size_t>(status.st_size) != SymmetricMemory::bytes_for(size_, part_bytes) ||
        (by_number && (status.st_dev != device || status.st_ino != file))) {
      answer = fmt::format("{}found something else at {}", kNo, path);
      return nullptr;
    }
    auto region = std::make_shared<SymmetricMemory>(fd.get(), rank_, size_, part_bytes, made_ + 1);
    region->claim();
    answer = kYes;
    return region;
  } catch (const Error& error) {
    answer = fmt::format("{}{}", kFull, error.message());
  } catch (const std::exception& error) {
    answer = fmt::format("{}{}", kFull, error.what());
  }
  return nullptr;
}

std::shared_ptr<void> SymmetricHeap::allocate(std::size_t bytes, const backend::AllocationOps::Exchange& exchange) {
  const auto throw_full = [&](std::size_t rank, const std::string& why) {
    throw Error(ErrorCode::resource,
                fmt::format("alloc: no room for {} bytes on each of {} ranks, says rank {} ({}); ask for less, free "
                            "memory, or raise the limit that is in the way",
                            bytes, size_, rank, why),
                group_, static_cast<int>(rank));
  };
  if (bytes > std::numeric_limits<std::size_t>::max() / 2 / static_cast<std::size_t>(size_))
    throw_full(0, "no memory is that large");
  const std::size_t part_bytes = (std::max<std::size_t>(bytes, 1) + page_bytes() - 1) / page_bytes() * page_bytes();
  for (const bool by_file : {false, true}) {
    const Offer own = rank_ == 0 ? make_offer(by_file, part_bytes) : Offer();
    const std::string offer = exchange(own.words.substr(0, backend::AllocationOps::kMostWords)).front();
    if (offer.starts_with(kFull)) throw_full(0, offer.substr(kFull.size()));
    if (offer == kNone) continue;
    std::string answer;
    auto region = accept(offer, part_bytes, answer);
    std::vector<std::string> answers;
    try {
      answers = exchange(answer.substr(0, backend::AllocationOps::kMostWords));
    } catch (...) {
      // Rank 0, who would remove the file, may be what was lost.
      if (offer.starts_with(kFile)) ::unlink(offer.c_str() + kFile.size());
      throw;
    }
    const auto refusal = std::find_if(answers.begin(), answers.end(), [](const auto& a) { return a != kYes; });
    if (refusal == answers.end()) {
      ++made_;
      region->enter_all();
      exchange("entered");  // before one of them gives back what others are still entering
      std::erase_if(memories_, [](const auto& old) { return old->is_given_back(); });
      memories_.push_back(region);
      return {region->part(rank_), [region](void*) { region->give_back(); }};
    }
    const auto refuser = static_cast<std::size_t>(refusal - answers.begin());
    if (refusal->starts_with(kFull)) throw_full(refuser, refusal->substr(kFull.size()));
    if (rank_ == 0)
      core::log::info("group '{}': rank {} cannot share memory{}: {}", group_, refuser,
                      by_file ? "" : "; trying a file in /dev/shm", refusal->substr(kNo.size()));
  }
  return nullptr;
}

void SymmetricHeap::detach() noexcept {
  for (const auto& region : memories_) region->detach();
}

const SymmetricMemory* SymmetricHeap::find(std::uint64_t number) const noexcept {
  const auto found =
      std::find_if(memories_.begin(), memories_.end(), [&](const auto& region) { return region->number() == number; });
  return found == memories_.end() ? nullptr : found->get();
}

const SymmetricMemory* SymmetricHeap::find(const void* memory, std::size_t bytes) const noexcept {
  const auto found = std::find_if(memories_.begin(), memories_.end(),
                                  [&](const auto& region) { return region->offset_of(memory, bytes).has_value(); });
  return found == memories_.end() ? nullptr : found->get();
}

}  // namespace col::shm_backend

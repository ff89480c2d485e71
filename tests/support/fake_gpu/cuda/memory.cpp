#include "support/fake_gpu/cuda/memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "support/fake_gpu/common.hpp"

namespace fake_gpu {
namespace {

constexpr size_t kAlignment = 512;
// Between two allocations lie addresses that belong to none.
constexpr size_t kGap = 512;
constexpr int kNewMemory = 0xA5;

size_t rounded(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment + kGap;
}

char* map(size_t bytes, int access) {
  void* start = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) die("cannot map the memory of a device; set FAKE_GPU_MEMORY to less");
  return static_cast<char*>(start);
}

constexpr size_t kHostPage = 4096;

uint64_t next_number() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

uint64_t address_of(void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

// ---- Of a device

DeviceMemory::DeviceMemory(size_t limit, bool protect)
    : limit_(limit), reserved_(2 * limit + (size_t{1} << 24)), protect_(protect) {
  bytes_ = map(reserved_, PROT_READ | PROT_WRITE);
  base_ = reinterpret_cast<uint64_t>(protect_ ? map(reserved_, PROT_NONE) : bytes_);
}

DeviceMemory::~DeviceMemory() {
  munmap(bytes_, reserved_);
  if (protect_) munmap(reinterpret_cast<void*>(base_), reserved_);
}

std::optional<uint64_t> DeviceMemory::place(size_t bytes, size_t alignment) const {
  const size_t need = rounded(bytes);
  auto aligned = [&](uint64_t address) { return (address + alignment - 1) / alignment * alignment; };
  for (uint64_t from : {aligned(base_ + next_), base_}) {
    uint64_t start = from;
    for (auto it = live_.lower_bound(from); it != live_.end() && it->first < start + need; ++it) {
      start = aligned(it->first + rounded(it->second.bytes));
    }
    if (start + need <= base_ + reserved_) return start;
  }
  return std::nullopt;
}

std::optional<uint64_t> DeviceMemory::allocate(size_t bytes, size_t alignment) {
  if (bytes > limit_ - used_) return std::nullopt;
  auto start = place(bytes, alignment);
  if (!start) return std::nullopt;
  live_[*start] = {*start, bytes, next_number()};
  used_ += bytes;
  next_ = *start - base_ + rounded(bytes);
  std::memset(bytes_ + (*start - base_), kNewMemory, bytes);
  return start;
}

bool DeviceMemory::free(uint64_t start) {
  auto found = live_.find(start);
  if (found == live_.end()) return false;
  used_ -= found->second.bytes;
  const size_t page = 4096;
  const size_t first = (start - base_ + page - 1) / page * page;
  const size_t end = (start - base_ + found->second.bytes) / page * page;
  if (end > first) madvise(bytes_ + first, end - first, MADV_DONTNEED);
  live_.erase(found);
  return true;
}

void DeviceMemory::free_all() {
  while (!live_.empty()) free(live_.begin()->first);
}

std::optional<Allocation> DeviceMemory::find(uint64_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(after)->second;
  if (address - candidate.start >= candidate.bytes) return std::nullopt;
  return candidate;
}

char* DeviceMemory::host_view(uint64_t address, size_t bytes) const {
  auto allocation = find(address);
  if (!allocation || bytes > allocation->bytes - (address - allocation->start)) return nullptr;
  return bytes_ + (address - base_);
}

// ---- Of the host

void* HostMemory::allocate(size_t bytes, std::shared_ptr<Context> context) {
  void* pointer = std::aligned_alloc(kHostPage, (bytes + kHostPage - 1) / kHostPage * kHostPage);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0xA5, bytes);
  ranges_[address_of(pointer)] = {address_of(pointer), bytes, next_number(), std::move(context)};
  return pointer;
}

bool HostMemory::free(void* pointer) {
  auto found = ranges_.find(address_of(pointer));
  if (found == ranges_.end()) return false;
  ranges_.erase(found);
  std::free(pointer);
  return true;
}

void HostMemory::forget(const Context& context) {
  std::erase_if(ranges_, [&](const auto& entry) {
    if (entry.second.context.get() != &context) return false;
    std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
}

const HostRange* HostMemory::find(uint64_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const HostRange& candidate = std::prev(after)->second;
  return address - candidate.start < candidate.bytes ? &candidate : nullptr;
}

}  // namespace fake_gpu

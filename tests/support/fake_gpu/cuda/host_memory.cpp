#include "support/fake_gpu/cuda/host_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fake_gpu {
namespace {

constexpr size_t kHostPage = 4096;

uint64_t address_of(void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

void* HostMemory::allocate(size_t bytes, std::shared_ptr<Context> context) {
  void* pointer = std::aligned_alloc(kHostPage, (bytes + kHostPage - 1) / kHostPage * kHostPage);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0xA5, bytes);
  ranges_[address_of(pointer)] = {address_of(pointer), bytes, next_id_++, false, std::move(context)};
  return pointer;
}

bool HostMemory::free(void* pointer) {
  auto found = ranges_.find(address_of(pointer));
  if (found == ranges_.end() || found->second.registered) return false;
  ranges_.erase(found);
  std::free(pointer);
  return true;
}

bool HostMemory::add(void* pointer, size_t bytes, std::shared_ptr<Context> context) {
  const uint64_t start = address_of(pointer);
  for (const auto& [other, range] : ranges_) {
    if (other < start + bytes && start < other + range.bytes) return false;
  }
  ranges_[start] = {start, bytes, next_id_++, true, std::move(context)};
  return true;
}

bool HostMemory::remove(void* pointer) {
  auto found = ranges_.find(address_of(pointer));
  if (found == ranges_.end() || !found->second.registered) return false;
  ranges_.erase(found);
  return true;
}

void HostMemory::forget(const Context& context) {
  std::erase_if(ranges_, [&](const auto& entry) {
    if (entry.second.context.get() != &context) return false;
    if (!entry.second.registered) std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
}

const HostRange* HostMemory::find(uint64_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const HostRange& candidate = std::prev(after)->second;
  return address - candidate.start < candidate.bytes ? &candidate : nullptr;
}

size_t HostMemory::count(bool registered) const {
  return std::count_if(ranges_.begin(), ranges_.end(),
                       [&](const auto& entry) { return entry.second.registered == registered; });
}

}  // namespace fake_gpu

// The memory of one device: addresses that the host cannot touch, and where their bytes really are. And host memory
// that the driver knows: allocated by it, or registered with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace fake_gpu {

struct Context;

struct Allocation {
  uint64_t start;
  size_t bytes;
  uint64_t number;  // no other allocation of the process has had it
};

class DeviceMemory {
 public:
  // `limit` is what can be allocated in all; with `protect` a host access to a device address crashes.
  DeviceMemory(size_t limit, bool protect);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // The address, or nullopt when the device is full. New memory holds a pattern, never zeros.
  std::optional<uint64_t> allocate(size_t bytes, size_t alignment = 512);
  // False when no allocation begins at the address.
  bool free(uint64_t start);
  void free_all();
  // The allocation that holds the address.
  std::optional<Allocation> find(uint64_t address) const;
  // Whether the address belongs to this device, allocated or not.
  bool owns(uint64_t address) const { return address >= base_ && address < base_ + reserved_; }
  // Where the host finds the bytes; null unless the range lies within one allocation.
  char* host_view(uint64_t address, size_t bytes) const;

  size_t limit() const { return limit_; }
  size_t used() const { return used_; }
  size_t allocations() const { return live_.size(); }

 private:
  std::optional<uint64_t> place(size_t bytes, size_t alignment) const;

  size_t limit_;
  size_t reserved_;
  uint64_t base_ = 0;      // device addresses
  char* bytes_ = nullptr;  // their contents
  bool protect_;
  size_t used_ = 0;
  uint64_t next_ = 0;  // the search for room begins here: freed addresses are not soon given again
  std::map<uint64_t, Allocation> live_;
};

struct HostRange {
  uint64_t start;
  size_t bytes;
  uint64_t number;
  std::shared_ptr<Context> context;
};

class HostMemory {
 public:
  // Null when there is no memory. What it holds at first is a pattern.
  void* allocate(size_t bytes, std::shared_ptr<Context> context);
  // False when the driver did not allocate it.
  bool free(void* pointer);
  void forget(const Context& context);
  const HostRange* find(uint64_t address) const;
  size_t count() const { return ranges_.size(); }

 private:
  std::map<uint64_t, HostRange> ranges_;
};

}  // namespace fake_gpu

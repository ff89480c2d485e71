// Host memory that the driver knows: allocated by it, or registered with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace fake_gpu {

struct Context;

struct HostRange {
  uint64_t start;
  size_t bytes;
  uint64_t id;
  bool registered;  // else allocated by the driver
  std::shared_ptr<Context> context;
};

class HostMemory {
 public:
  // Null when there is no memory. What it holds at first is a pattern.
  void* allocate(size_t bytes, std::shared_ptr<Context> context);
  // False when the driver did not allocate it.
  bool free(void* pointer);
  // False when a part is known already.
  bool add(void* pointer, size_t bytes, std::shared_ptr<Context> context);
  bool remove(void* pointer);
  void forget(const Context& context);
  const HostRange* find(uint64_t address) const;
  size_t count(bool registered) const;

 private:
  uint64_t next_id_ = 1ull << 32;
  std::map<uint64_t, HostRange> ranges_;
};

}  // namespace fake_gpu

#include "support/fake_gpu/nccl/registry.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

constexpr char kMark[] = "fake nccl id";

struct Identity {
  char mark[16];
  uint64_t number;
};

}  // namespace

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

bool Registry::has(const void* begin, size_t bytes) const {
  auto after = memory.upper_bound(const_cast<void*>(begin));
  if (after == memory.begin()) return false;
  const auto& [start, whole] = *std::prev(after);
  return static_cast<const char*>(begin) + bytes <= static_cast<const char*>(start) + whole;
}

ncclComm_t add_communicator(std::shared_ptr<Communicator> communicator) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto handle = reinterpret_cast<ncclComm_t>(all.new_handle());
  all.communicators[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> find_communicator(ncclComm_t handle) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.communicators.find(handle);
  require(found != all.communicators.end(),
          handle == nullptr ? "the communicator is null" : "the communicator was destroyed or never was one");
  return found->second;
}

void remove_communicator(ncclComm_t handle) {
  Registry& all = registry();
  std::shared_ptr<Communicator> last;
  std::lock_guard lock(all.mutex);
  auto found = all.communicators.find(handle);
  if (found == all.communicators.end()) return;
  last = std::move(found->second);
  all.communicators.erase(found);
}

std::vector<std::shared_ptr<Communicator>> all_communicators() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<Communicator>> list;
  for (const auto& [handle, communicator] : all.communicators) list.push_back(communicator);
  return list;
}

// ---- Identities

void make_identity(ncclUniqueId& id) {
  std::random_device random;
  Identity identity{};
  std::memcpy(identity.mark, kMark, sizeof kMark);
  identity.number = uint64_t{random()} << 32 | random();
  // The rest is not zero, as in real ones: who copies only a part loses something.
  std::memset(id.internal, 0x6E, sizeof id.internal);
  std::memcpy(id.internal, &identity, sizeof identity);
}

std::string text_of(const ncclUniqueId& id) {
  Identity identity;
  std::memcpy(&identity, id.internal, sizeof identity);
  const bool whole = id.internal[NCCL_UNIQUE_ID_BYTES - 1] == 0x6E;
  require(whole && std::memcmp(identity.mark, kMark, sizeof kMark) == 0, "not an identity of ncclGetUniqueId");
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(identity.number));
  return text;
}

}  // namespace fake_nccl

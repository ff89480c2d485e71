#include "support/fake_gpu/nccl/registry.hpp"

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
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

}  // namespace fake_nccl

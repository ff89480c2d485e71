// The backends by name: an explicit list of those built in, and what programs add.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "backend/factories.hpp"

namespace col {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<BackendFactory>> factories;

  Registry() {
#ifdef COL_HAVE_GLOO
    constexpr bool kGlooBuilt = true;
#else
    constexpr bool kGlooBuilt = false;
#endif
    factories.push_back(backend::make_module_factory(
        {.backend = "gloo", .file = "libcol_gloo.so", .needs = "Gloo (libgloo-dev)", .built = kGlooBuilt}));
#ifdef COL_HAVE_SHM
    factories.push_back(shm_backend::make_factory());
#endif
#ifdef COL_HAVE_UCX
    constexpr bool kUcxBuilt = true;
#else
    constexpr bool kUcxBuilt = false;
#endif
    factories.push_back(backend::make_module_factory(
        {.backend = "ucx",
         .file = "libcol_ucx.so",
         .needs = "UCX (libucx-dev)",
         .built = kUcxBuilt,
         .longest_host_name = HOST_NAME_MAX - 1}));  // it forgets the byte that ends a string
#ifdef COL_HAVE_HOSTS
    factories.push_back(hosts_backend::make_factory("hosts", "gloo"));
    factories.push_back(hosts_backend::make_factory("hosts_ucx", "ucx"));
#endif
#ifdef COL_HAVE_NCCL
    constexpr bool kNcclBuilt = true;
#else
    constexpr bool kNcclBuilt = false;
#endif
    factories.push_back(backend::make_module_factory({.backend = "nccl",
                                                      .device = Device::Type::cuda,
                                                      .file = "libcol_nccl.so",
                                                      .needs = "CUDA and NCCL (their headers were not found)",
                                                      .built = kNcclBuilt}));
  }

  // Requires: `mutex` is held.
  BackendFactory* find(std::string_view name) const {
    for (const auto& factory : factories) {
      if (factory->name() == name) return factory.get();
    }
    return nullptr;
  }
};

Registry& registry() {
  // Never destroyed: find_backend() promises objects that live as long as the process, also in static destructors.
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

void register_backend(std::unique_ptr<BackendFactory> factory) {
  if (factory == nullptr) {
    throw Error(ErrorCode::invalid_argument, "register_backend: the factory is null; pass one made with make_unique");
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.find(factory->name()) != nullptr) {
    throw Error(
        ErrorCode::already_initialized,
        fmt::format("register_backend: there is a backend named '{}' already; choose another name", factory->name()));
  }
  all.factories.push_back(std::move(factory));
}

BackendFactory* find_backend(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.find(name);
}

BackendFactory* find_device_backend() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found =
      std::ranges::find_if(all.factories, [](const auto& factory) { return factory->device() != Device::Type::cpu; });
  return found == all.factories.end() ? nullptr : found->get();
}

std::vector<std::string> backend_names() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& factory : all.factories) names.emplace_back(factory->name());
  return names;
}

}  // namespace col

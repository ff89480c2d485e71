// The factories that the registry lists. No foreign header here.
#pragma once

#include <limits.h>

#include <cstddef>
#include <memory>
#include <string>

#include <col/channel.hpp>

namespace col::shm_backend {
std::unique_ptr<BackendFactory> make_factory();
}

namespace col::hosts_backend {
// `wire`: the name of the backend between hosts.
std::unique_ptr<BackendFactory> make_factory(std::string name, std::string wire);
}  // namespace col::hosts_backend

namespace col::backend {

inline constexpr std::size_t kLongestHostName = HOST_NAME_MAX;  // of Linux

// A backend in a library of its own, which is loaded on the first request for this backend. So programs that do not use
// it pay nothing for it, and libcol needs none of its dependencies.
struct ModuleSpec {
  std::string backend;                      // its name
  Device::Type device = Device::Type::cpu;  // the kind of memory that its channels move
  std::string file;                         // of the library, as in "libcol_nccl.so"
  std::string needs;                        // what is needed to build it, for messages
  bool built = false;                       // whether it was built together with this libcol
  // Characters. What it needs ends the process, while it is loaded, where the host has a longer name.
  std::size_t longest_host_name = kLongestHostName;
};

// Looks for the library in the folders of COL_PLUGIN_PATH, then beside libcol.so, then in libcol0/ there. If none fits,
// the backend is unavailable and says why. In libcol.a, nothing is looked for: Gloo is inside (linked.cpp).
std::unique_ptr<BackendFactory> make_module_factory(ModuleSpec spec);

}  // namespace col::backend

// A backend in a library of its own, which is loaded when the backend is first asked for: so programs that do not use
// it pay nothing for it, and libcol needs none of what it needs.
#pragma once

#include <memory>
#include <string>

#include <col/backend.hpp>

namespace col::backend {

struct ModuleSpec {
  std::string backend;  // its name
  std::string file;     // of the library, as in "libcol_nccl.so"
  std::string needs;    // what building it takes, for messages
  bool built = false;   // together with this libcol
};

// Looks for the library in the folders of COL_PLUGIN_PATH, then beside libcol.so. Where there is none that fits, the
// backend is unavailable, and says why.
std::unique_ptr<BackendFactory> make_module_factory(ModuleSpec spec);

}  // namespace col::backend

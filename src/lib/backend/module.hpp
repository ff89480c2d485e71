// The library of a backend that is loaded on first use (libcol_nccl.so): what it exports.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <col/channel.hpp>

namespace col::backend {

// Such a library links libcol.so, and exports one C function without parameters, with the name kModuleEntry, which
// returns this struct. Exceptions cross between the two libraries.
struct Module {
  // Returns the value of an environment variable from libcol's table; nothing if it is unset or empty. Throws internal
  // for a name that is in no table.
  using Environment = std::function<std::optional<std::string>(std::string_view name)>;

  std::string_view build_id;  // identifies these headers and the compiler; libcol refuses a module with another id
  std::unique_ptr<BackendFactory> (*make_factory)(Environment environment);
};
inline constexpr const char* kModuleEntry = "col_backend_entry";
using ModuleEntry = const Module*();

}  // namespace col::backend

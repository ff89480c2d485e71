#include "backend/nccl/shared_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/error.hpp>

namespace col::nccl_backend {

SharedLibrary::SharedLibrary(const std::string& what, const std::vector<std::string>& names) : what_(what) {
  std::vector<std::string> problems;
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      path_ = name;
      return;
    }
    problems.emplace_back(::dlerror());
  }
  throw Error(ErrorCode::unavailable, fmt::format("no {}: {}", what, fmt::join(problems, "; ")));
}

SharedLibrary::Symbol SharedLibrary::find(const char* name) const {
  if (void* const symbol = ::dlsym(handle_, name)) return {symbol};
  throw Error(ErrorCode::unavailable, fmt::format("the {} in {} has no {}: it is too old", what_, path_, name));
}

}  // namespace col::nccl_backend

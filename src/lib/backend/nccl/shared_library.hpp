// A shared library that is loaded at run time and stays loaded: what it has started (threads, exit handlers) does not
// survive being unloaded.
#pragma once

#include <string>
#include <vector>

namespace col::nccl_backend {

class SharedLibrary {
 public:
  // The first of `names` that can be loaded. Throws unavailable, with `what` ("NCCL") and each name that was tried and
  // why it is none.
  SharedLibrary(const std::string& what, const std::vector<std::string>& names);

  const std::string& path() const noexcept { return path_; }

  // Sets `function` to the symbol of that name. Throws unavailable when there is none.
  template <class Function>
  void bind(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(require(name));
  }

 private:
  void* require(const char* name) const;

  std::string what_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace col::nccl_backend

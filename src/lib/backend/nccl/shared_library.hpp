// A shared library that is loaded at run time and stays loaded, because the threads and exit handlers that it has
// started would not survive unloading.
#pragma once

#include <string>
#include <vector>

namespace col::nccl_backend {

class SharedLibrary {
 public:
  // Loads the first of `names` that can be loaded. Throws unavailable, with `what` ("NCCL"), each name that was tried,
  // and why it failed.
  SharedLibrary(const std::string& what, const std::vector<std::string>& names);

  const std::string& path() const noexcept { return path_; }

  // A function of the library, which converts to its type.
  struct Symbol {
    void* address = nullptr;
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address);
    }
  };
  // Throws unavailable if there is none.
  Symbol find(const char* name) const;
  template <class Function>
  void bind(const char* name, Function*& function) const {
    function = find(name);
  }

 private:
  std::string what_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace col::nccl_backend

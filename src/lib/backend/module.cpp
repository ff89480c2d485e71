#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/device.hpp>

#include "backend/build_id.hpp"
#include "backend/factories.hpp"
#include "backend/module.hpp"
#include "core/env.hpp"
#include "core/joined.hpp"

namespace col::backend {
namespace {

// Of the library, or program, that this code is in.
std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&make_module_factory), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::vector<std::string> folders() {
  std::vector<std::string> all;
  const std::string path = core::env::get("COL_PLUGIN_PATH").value_or("");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) all.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string own = own_folder(); !own.empty()) {
    all.push_back(own);
    all.push_back(own + "/libcol0");  // in the system's own folders
  }
  return all;
}

class ModuleFactory final : public BackendFactory {
 public:
  explicit ModuleFactory(ModuleSpec spec) : spec_(std::move(spec)) {}

  std::string_view name() const override { return spec_.backend; }

  std::optional<std::string> unavailable_reason() const override {
    const BackendFactory* const factory = loaded();
    return factory != nullptr ? factory->unavailable_reason() : why_not_;
  }

  Device::Type device() const override { return spec_.device; }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    return required(request).connect(request, wait);
  }

  std::string why_alone() const override {
    const BackendFactory* const factory = loaded();
    return factory != nullptr ? factory->why_alone() : why_not_;
  }

  DeviceMemory& device_memory() override {
    if (BackendFactory* const factory = loaded()) return factory->device_memory();
    throw Error(ErrorCode::unavailable, why_not_);
  }

  std::string seat(int device) override {
    BackendFactory* const factory = loaded();
    return factory != nullptr ? factory->seat(device) : device_memory().uuid(device);
  }

  std::string describe(const ConnectRequest& request) const override { return required(request).describe(request); }

 private:
  BackendFactory* loaded() const {
    std::call_once(once_, [this] {
      try {
        load();
      } catch (const std::exception& error) {
        why_not_ = error.what();
      }
    });
    return factory_.get();
  }

  BackendFactory& required(const ConnectRequest& request) const {
    if (BackendFactory* const factory = loaded()) return *factory;
    throw Error(ErrorCode::unavailable, why_not_, request.group, request.rank);
  }

  void load() const {
    std::array<char, kLongestHostName + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    if (const std::size_t length = std::strlen(host.data()); length > spec_.longest_host_name) {
      why_not_ =
          fmt::format("the name of this host has {} characters, and {} takes {} at most; give the host a shorter name",
                      length, spec_.needs, spec_.longest_host_name);
      return;
    }
    const std::vector<std::string> tried = folders();
    for (const std::string& folder : tried) {
      const std::string path = folder + "/" + spec_.file;
      if (::access(path.c_str(), F_OK) != 0) continue;
      return open(path);
    }
    why_not_ = fmt::format("{} is in none of {}; ", spec_.file, core::joined(tried, ", "));
    why_not_ += spec_.built ? "it was built with this libcol: put it beside libcol.so, or name its folder in "
                              "COL_PLUGIN_PATH"
                            : fmt::format("this libcol was built without {}", spec_.needs);
  }

  // The library stays loaded to the end of the process: its factory and channels are objects of its code.
  void open(const std::string& path) const {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why_not_ = fmt::format("cannot load {}; install what it needs on this host", ::dlerror());
      return;
    }
    auto* const entry = reinterpret_cast<ModuleEntry*>(::dlsym(library, kModuleEntry));
    if (entry == nullptr) {
      why_not_ = fmt::format("{} is no backend of col: it has no {}", path, kModuleEntry);
      return;
    }
    const Module& module = *entry();
    if (module.build_id != kBuildId) {
      why_not_ = fmt::format("{} belongs to another build of col ({}, this is {}); install both from one build", path,
                             module.build_id, kBuildId);
      return;
    }
    factory_ = module.make_factory([](std::string_view variable) { return core::env::get(variable); });
  }

  const ModuleSpec spec_;
  mutable std::once_flag once_;  // guards the two below, which are set within it
  mutable std::unique_ptr<BackendFactory> factory_;
  mutable std::string why_not_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_module_factory(ModuleSpec spec) {
  return std::make_unique<ModuleFactory>(std::move(spec));
}

}  // namespace col::backend

// In libcol.a, this file replaces module.cpp: no module is loaded. Gloo is a part of the program, and backends that
// need a library of their own are unavailable.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/device.hpp>

#include "backend/factories.hpp"
#include "backend/module.hpp"
#include "core/env.hpp"

#ifdef COL_HAVE_GLOO
extern "C" const col::backend::Module* col_backend_entry();  // in gloo/
#endif

namespace col::backend {
namespace {

class NotLinked final : public BackendFactory {
 public:
  explicit NotLinked(const ModuleSpec& spec)
      : name_(spec.backend),
        device_(spec.device),
        why_not_(fmt::format("needs the shared library: this program has libcol.a inside; link it with libcol.so{}",
                             spec.built ? "" : fmt::format(", built with {}", spec.needs))) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable_reason() const override { return why_not_; }
  Device::Type device() const override { return device_; }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& /*wait*/) override {
    throw Error(ErrorCode::unavailable, why_not_, request.group, request.rank);
  }
  std::string describe(const ConnectRequest& /*request*/) const override { return why_not_; }
  std::string why_alone() const override { return why_not_; }
  DeviceMemory& device_memory() override { throw Error(ErrorCode::unavailable, why_not_); }

 private:
  std::string name_;
  Device::Type device_;
  std::string why_not_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_module_factory(ModuleSpec spec) {
#ifdef COL_HAVE_GLOO
  if (spec.backend == "gloo") {
    return col_backend_entry()->make_factory([](std::string_view variable) { return core::env::get(variable); });
  }
#endif
  return std::make_unique<NotLinked>(spec);
}

}  // namespace col::backend

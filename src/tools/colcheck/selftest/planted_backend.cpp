#include "colcheck/selftest/planted_backend.hpp"

#include <fcntl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <col/backend.hpp>

#include "colcheck/selftest/bug.hpp"
#include "colcheck/selftest/planted_channel.hpp"

namespace col::colcheck {
namespace {

// The first backend that can be used here; null when none can.
BackendFactory* message_backend() {
  for (const std::string_view name : {"shm", "gloo"}) {
    BackendFactory* const factory = find_backend(name);
    if (factory != nullptr && !factory->unavailable_reason()) return factory;
  }
  return nullptr;
}

class PlantedBackend final : public BackendFactory {
 public:
  PlantedBackend(const PlantedBug& bug, BackendFactory* inner) : bug_(bug.bug), name_(bug.backend()), inner_(inner) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable_reason() const override {
    if (inner_ != nullptr) return inner_->unavailable_reason();
    return "it sends its messages over shm or gloo, and neither can be used here";
  }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    if (bug_ == Bug::leaks_descriptors) static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return std::make_unique<PlantedChannel>(bug_, inner_->connect(request, wait), request.rank, request.size);
  }
  std::string describe(const ConnectRequest& request) const override {
    return fmt::format("{}, over {}", name_, inner_->describe(request));
  }

 private:
  const Bug bug_;
  const std::string name_;
  BackendFactory* const inner_;
};

}  // namespace

void register_planted_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    BackendFactory* const inner = message_backend();
    for (const PlantedBug& bug : planted_bugs()) register_backend(std::make_unique<PlantedBackend>(bug, inner));
  });
}

}  // namespace col::colcheck

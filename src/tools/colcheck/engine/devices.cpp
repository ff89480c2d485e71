#include "colcheck/engine/devices.hpp"

#include <algorithm>
#include <array>

#include "colcheck/engine/case.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

constexpr std::array<std::string_view, 3> kDevices = {"cpu", "cuda", "mixed"};

}  // namespace

std::string_view to_string(Devices devices) {
  return kDevices[static_cast<std::size_t>(devices)];
}

std::optional<Devices> devices_from_string(std::string_view name) {
  const auto found = std::find(kDevices.begin(), kDevices.end(), name);
  if (found == kDevices.end()) return std::nullopt;
  return static_cast<Devices>(found - kDevices.begin());
}

Device::Type device_of(const Case& c, int rank, Side side) {
  if (c.devices != Devices::mixed) return c.devices == Devices::cuda ? Device::Type::cuda : Device::Type::cpu;
  const bool opposite = side == Side::output && mix(c.seed, 0xdef1) % 2 == 0;
  return (rank % 2 == 1) != opposite ? Device::Type::cuda : Device::Type::cpu;
}

bool needs_gpu(Devices devices, std::string_view backend) {
  return devices != Devices::cpu || backend == "nccl";
}

}  // namespace col::colcheck

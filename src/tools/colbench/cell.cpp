#include "colbench/cell.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include <col/backend.hpp>

namespace col::colbench {
namespace {

constexpr std::array<std::string_view, kExtraCount> kExtras = {"pingpong", "oneway", "bidirectional", "store"};

// Of a collective; store is an allreduce by another way. Nothing for messages.
const CollectiveRow* find_row(Operation operation) {
  if (operation == Operation::store) return &row_of(Collective::allreduce);
  const auto collective = collective_of(operation);
  return collective ? &row_of(*collective) : nullptr;
}

// Whether the larger of a rank's two buffers is one block per rank.
bool has_blocks(Operation operation) {
  const CollectiveRow* const row = find_row(operation);
  return row != nullptr && row->has_blocks();
}

constexpr std::string_view kUnits = "KMGT";

}  // namespace

std::string_view to_string(Operation operation) {
  if (const auto collective = collective_of(operation)) return to_string(*collective);
  return kExtras.at(static_cast<std::size_t>(static_cast<int>(operation) - Operation::collectives()));
}

std::optional<Operation> operation_from_string(std::string_view name) {
  for (int i = 0; i < kOperationCount; ++i) {
    if (to_string(static_cast<Operation>(i)) == name) return static_cast<Operation>(i);
  }
  return std::nullopt;
}

std::optional<Collective> collective_of(Operation operation) {
  const auto number = static_cast<int>(operation);
  if (number >= Operation::collectives()) return std::nullopt;
  return static_cast<Collective>(number);
}

bool is_reduction(Operation operation) {
  const CollectiveRow* const row = find_row(operation);
  return row != nullptr && row->reduces();
}

bool is_rooted(Operation operation) {
  const CollectiveRow* const row = find_row(operation);
  return row != nullptr && row->rooted;
}

bool is_message(Operation operation) {
  return operation == Operation::pingpong || operation == Operation::oneway || operation == Operation::bidirectional;
}

bool has_in_place(Operation operation) {
  const auto collective = collective_of(operation);
  return collective && row_of(*collective).has_in_place();
}

std::string_view to_string(Devices devices) {
  constexpr std::array<std::string_view, kDevicesCount> kNames = {"cpu", "cuda", "cpu-cuda", "cuda-cpu"};
  return kNames[static_cast<std::size_t>(devices)];
}

Device::Type device_of(Devices devices, bool begins) {
  const bool on_gpu = devices == Devices::cuda || devices == (begins ? Devices::cuda_cpu : Devices::cpu_cuda);
  return on_gpu ? Device::Type::cuda : Device::Type::cpu;
}

bool moves_gpu_memory(const std::string& backend) {
  const BackendFactory* const factory = find_backend(backend);
  return factory != nullptr && factory->device() != Device::Type::cpu;
}

bool needs_gpu(const CellSpec& spec) {
  return spec.device != Devices::cpu || moves_gpu_memory(spec.backend);
}

std::string_view to_string(Cadence cadence) {
  return cadence == Cadence::isolated ? "isolated" : "stream";
}

std::string_view to_string(CacheState cache) {
  return cache == CacheState::hot ? "hot" : cache == CacheState::cold ? "cold" : "rotate";
}

std::size_t block_count(const CellSpec& spec, int group_size) {
  if (spec.operation == Operation::barrier) return 0;
  const std::size_t count = spec.bytes / size_of(spec.dtype);
  const std::size_t blocks = has_blocks(spec.operation) ? static_cast<std::size_t>(group_size) : 1;
  return std::max<std::size_t>(1, count / blocks);
}

std::size_t whole_bytes(const CellSpec& spec, int group_size) {
  const std::size_t blocks = has_blocks(spec.operation) ? static_cast<std::size_t>(group_size) : 1;
  return block_count(spec, group_size) * blocks * size_of(spec.dtype);
}

std::string size_text(std::size_t bytes) {
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", bytes);
  const bool exact = value * 100 == std::floor(value * 100);
  if (!exact && bytes < 1'000'000) return fmt::format("{}", bytes);
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + kUnits[unit - 1];
}

std::optional<std::size_t> parse_size(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const std::size_t unit = kUnits.find(static_cast<char>(text.back() & ~0x20));
    if (unit != std::string_view::npos && text.back() > '9') {
      scale = std::pow(1024.0, static_cast<double>(unit + 1));
      text.remove_suffix(1);
    }
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty() || value < 0) return std::nullopt;
  const double bytes = value * scale;
  if (bytes != std::floor(bytes) || bytes > 9e18) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

std::string text_of(const CellSpec& spec) {
  std::string text(to_string(spec.operation));
  if (spec.operation != Operation::barrier) {
    text += fmt::format(" {} {}", size_text(spec.bytes), col::to_string(spec.dtype));
    if (is_reduction(spec.operation)) text += fmt::format(" {}", col::to_string(spec.op));
  }
  if (!is_message(spec.operation)) text += fmt::format(", {}", spec.algorithm);
  text += fmt::format(" over {}", spec.backend);
  if (spec.pair) text += fmt::format(", ranks {} and {}", spec.pair->first, spec.pair->second);
  if (spec.in_place) text += ", in place";
  if (spec.cadence == Cadence::stream) text += ", stream";
  if (!spec.groups.empty()) text += fmt::format(", groups {}", spec.groups);
  return text;
}

}  // namespace col::colbench

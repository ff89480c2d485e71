#include "colbench/cell/cell.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <col/channel.hpp>

namespace col::colbench {
namespace {

constexpr std::array<std::string_view, kExtraCount> kExtras = {"pingpong", "oneway", "bidirectional"};

// Whether the larger of a rank's two buffers is one block per rank.
bool has_blocks(Operation operation) {
  const CollectiveRow* const row = find_row(operation);
  return row != nullptr && row->has_blocks();
}

constexpr std::string_view kUnits = "KMGT";

// Together these are more than the last cache of the machines that this is meant for.
constexpr std::size_t kRotatedBytes = std::size_t{128} << 20;
constexpr std::size_t kRotatedCaches = 2;  // and so many times what the GPU's cache holds
constexpr std::size_t kMostSets = 4096;

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

const CollectiveRow* find_row(Operation operation) {
  const auto collective = collective_of(operation);
  return collective ? &row_of(*collective) : nullptr;
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

bool has_order(Operation operation) {
  const auto collective = collective_of(operation);
  return collective && row_of(*collective).folds == Folds::all;
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
  return cadence == Cadence::isolated ? "isolated" : cadence == Cadence::stream ? "stream" : "prepared";
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

Shape shape_of(Operation operation, int group_size, bool is_root) {
  const CollectiveRow* const row = find_row(operation);
  if (row == nullptr) return {1, 1};  // messages
  const auto blocks = [&](Extent extent) {
    return extent == Extent::nothing ? 0 : extent == Extent::blocks ? group_size : 1;
  };
  return {row->has_input(is_root) ? blocks(row->in) : 0, row->has_output(is_root) ? blocks(row->out) : 0};
}

std::size_t rotated_sets(const CellSpec& spec, int group_size, std::size_t cache_bytes) {
  const Shape shape = shape_of(spec.operation, group_size, true);
  const std::size_t both =
      static_cast<std::size_t>(shape.in + shape.out) * block_count(spec, group_size) * size_of(spec.dtype);
  const std::size_t bytes = std::max(kRotatedBytes, kRotatedCaches * cache_bytes);
  return std::clamp(bytes / std::max<std::size_t>(1, both) + 1, std::size_t{2}, kMostSets);
}

Placement placement_of(const std::string& groups, int rank, int size) {
  int number = 0;
  const auto color_of = [&](int r) {
    if (groups == "pairs") return r / 2;
    if (groups == "bisect") return r < size / 2 ? 0 : 1;
    if (std::sscanf(groups.c_str(), "mod:%d", &number) == 1 && number > 0) return r % number;
    if (std::sscanf(groups.c_str(), "div:%d", &number) == 1 && number > 0) return r / number;
    return 0;
  };
  Placement placement{.group = color_of(rank), .rank = 0, .size = 0};
  for (int r = 0; r < size; ++r) {
    if (color_of(r) != placement.group) continue;
    if (r < rank) ++placement.rank;
    ++placement.size;
  }
  return placement;
}

// No group is larger than that of the first rank or, of two halves, that of the last.
int group_size_of(const CellSpec& spec) {
  if (is_message(spec.operation)) return std::min(2, spec.ranks);
  return std::max(placement_of(spec.groups, 0, spec.ranks).size,
                  placement_of(spec.groups, spec.ranks - 1, spec.ranks).size);
}

std::optional<Partner> partner_of(const CellSpec& spec, int rank, int size) {
  if (size < 2) return std::nullopt;
  if (spec.groups == "pairs") {
    const int partner = rank ^ 1;
    if (partner >= size) return std::nullopt;
    return Partner{partner, rank < partner};
  }
  int distance = 0;
  if (std::sscanf(spec.groups.c_str(), "bisect:%d", &distance) == 1 && distance > 0) {
    const bool begins = rank / distance % 2 == 0;
    const int partner = begins ? rank + distance : rank - distance;
    if (partner >= size) return std::nullopt;
    return Partner{partner, begins};
  }
  if (spec.groups == "bisect") {
    const int half = size / 2;
    if (rank >= 2 * half) return std::nullopt;
    return rank < half ? Partner{rank + half, true} : Partner{rank - half, false};
  }
  const auto [first, second] = spec.pair.value_or(std::pair(0, size - 1));
  if (rank == first) return Partner{second, true};
  if (rank == second) return Partner{first, false};
  return std::nullopt;
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
  return without_zeros(fmt::format("{:.2f}", value)) + kUnits[unit - 1];
}

std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

std::optional<std::size_t> parse_size(std::string_view text) {
  double scale = 1;
  // 32M, 32MB and 32MiB are the same: nccl-tests, too, counts by powers of 1024.
  for (const std::string_view suffix : {"iB", "ib", "B", "b"}) {
    const std::string_view number = text.substr(0, text.size() - std::min(text.size(), suffix.size()));
    const bool counts = !number.empty() && (suffix.size() == 1 || number.back() > '9');
    if (!text.ends_with(suffix) || !counts) continue;
    text = number;
    break;
  }
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
  if (spec.order != col::Order::any) text += fmt::format(", in order {}", col::to_string(spec.order));
  if (spec.cadence != Cadence::isolated) text += fmt::format(", {}", to_string(spec.cadence));
  if (!spec.groups.empty()) text += fmt::format(", groups {}", spec.groups);
  return text;
}

}  // namespace col::colbench

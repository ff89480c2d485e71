#include "backend/shm/segment/memory_room.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace col::shm_backend {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
// The kernel's own tables for pages come on top of them.
constexpr std::size_t kPartForTables = 64;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

// The numbers behind two names in a file of lines like "MemAvailable:  123 kB" or "inactive_file 123".
using TwoNumbers = std::array<std::optional<std::uint64_t>, 2>;
TwoNumbers find_numbers(const std::string& path, const std::array<std::string_view, 2>& names) {
  TwoNumbers found;
  std::ifstream file(path);
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (word == names[i]) found[i] = value;
    }
  }
  return found;
}

// Of a limit and what is used of it; nothing without a limit.
std::optional<std::uint64_t> left(const core::ControlGroup& group, std::string_view limit, std::string_view used) {
  const auto most = group.number(limit);
  if (!most) return std::nullopt;
  const std::uint64_t now = group.number(used).value_or(0);
  return *most > now ? *most - now : 0;
}

// Nothing when it is not below `least`. `swap`: what is free of the machine's.
std::optional<std::uint64_t> room_in(const core::ControlGroup& group, std::uint64_t swap, std::uint64_t least) {
  const bool unified = group.unified();
  const auto memory = unified ? left(group, "memory.max", "memory.current")
                              : left(group, "memory.limit_in_bytes", "memory.usage_in_bytes");
  // Swap counts for itself in version 2, together with the memory in version 1.
  const std::uint64_t both_bytes =
      unified ? kUnlimited
              : left(group, "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes").value_or(kUnlimited);
  if (!memory || std::min(*memory, both_bytes) >= least) return std::nullopt;
  // What was read from files goes before anything is killed. The groups inside count too; in version 2 they always do.
  const TwoNumbers files =
      unified ? find_numbers(group.folder() + "/memory.stat", {"inactive_file", "active_file"})
              : find_numbers(group.folder() + "/memory.stat", {"total_inactive_file", "total_active_file"});
  const std::uint64_t from_files = sum(files[0].value_or(0), files[1].value_or(0));
  const std::uint64_t own_swap = unified ? left(group, "memory.swap.max", "memory.swap.current").value_or(swap) : swap;
  const std::uint64_t room = sum(sum(*memory, from_files), std::min(own_swap, swap));
  return std::min(room, sum(both_bytes, from_files));
}

}  // namespace

std::optional<MemoryRoom> memory_room(const MemoryPlaces& places) {
  const auto [available, swap_free] = find_numbers(places.machine, {"MemAvailable:", "SwapFree:"});
  const std::uint64_t swap = swap_free.value_or(0) << 10;
  std::uint64_t least = kUnlimited;
  std::string where;
  const auto consider = [&](std::optional<std::uint64_t> bytes, auto&& describe) {
    if (!bytes || *bytes >= least) return;
    least = *bytes;
    where = describe();
  };
  if (available) consider(sum(*available << 10, swap), [] { return std::string("on this machine"); });
  for (const core::ControlGroup& group : core::control_groups("memory", places.groups)) {
    consider(room_in(group, swap, least),
             [&] { return fmt::format("in the memory limit of the control group {}", group.folder()); });
  }
  if (where.empty()) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max();
  return MemoryRoom{static_cast<std::size_t>(std::min(least, kMost)), std::move(where)};
}

std::optional<std::string> lack_of_memory(std::size_t bytes, const MemoryPlaces& places) {
  const auto room = memory_room(places);
  if (!room || (bytes <= room->bytes && bytes / kPartForTables <= room->bytes - bytes)) return std::nullopt;
  return fmt::format("{} KiB are left {}", room->bytes >> 10, room->where);
}

}  // namespace col::shm_backend

// How many processors the ranks of a group have together.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <exception>

#include "backend/shm/segment/segment.hpp"
#include "core/control_group.hpp"

namespace col::shm_backend {
namespace {

using Mask = std::array<std::uint64_t, RankPlace::kMaskWords>;

// How many processors' time the control groups of this process leave to it; 0: no limit, or none that can be read.
std::uint32_t quota() {
  const auto processors = core::processor_quota();
  if (!processors) return 0;
  // Whole ones: a part of one is no place for a rank. The bound is for the cast.
  return static_cast<std::uint32_t>(std::clamp(*processors, 1.0, 1e6));
}

}  // namespace

void Segment::tell_processors(int rank) const noexcept {
  RankPlace& own = place(rank);
  cpu_set_t set;
  CPU_ZERO(&set);
  Mask mask{};
  std::uint32_t known = RankPlace::kUnlisted;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    known = RankPlace::kListed;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      if (cpu >= 64 * mask.size()) {
        known = RankPlace::kUnlisted;
        break;
      }
      mask[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
    }
  }
  std::copy(mask.begin(), mask.end(), own.processors);
  try {
    own.processors_quota = quota();
  } catch (const std::exception&) {  // no memory to read it
    own.processors_quota = 0;
  }
  // release pairs with the acquire in processors().
  own.processors_known.store(known, std::memory_order_release);
}

std::optional<int> Segment::processors() const noexcept {
  Mask all{};
  std::uint32_t limit = 0;
  bool listed = true;
  for (int rank = 0; rank < size_; ++rank) {
    const RankPlace& one = place(rank);
    const std::uint32_t known = one.processors_known.load(std::memory_order_acquire);
    if (known == RankPlace::kUnknown) return std::nullopt;
    listed = listed && known == RankPlace::kListed;
    if (one.processors_quota != 0) limit = limit == 0 ? one.processors_quota : std::min(limit, one.processors_quota);
    for (std::size_t word = 0; word < all.size(); ++word) all[word] |= one.processors[word];
  }
  int count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (listed) {
    count = 0;
    for (const std::uint64_t word : all) count += std::popcount(word);
  }
  if (limit != 0) count = std::min(count, static_cast<int>(limit));
  return std::max(1, count);
}

}  // namespace col::shm_backend

#include "sampling.hpp"

#include <numeric>
#include <random>
#include <utility>

namespace digits {

Shard shard(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank);
  const auto n = static_cast<std::size_t>(size);
  const std::size_t base = count / n;
  const std::size_t longer = count % n;  // the first `longer` ranks take one more
  const std::size_t begin = r * base + (r < longer ? r : longer);
  return {begin, begin + base + (r < longer ? 1 : 0)};
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  // The engine and seed_seq are fixed by the standard; std::shuffle is not, so the swaps are spelled out.
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)};
  std::mt19937_64 engine(words);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[engine() % left]);
  return order;
}

}  // namespace digits

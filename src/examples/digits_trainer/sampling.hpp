// Which image goes where: the order of an epoch, and each rank's part of a batch. Pure functions of what all ranks
// know, so that nothing has to be exchanged to agree on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace digits {

struct Shard {
  std::size_t begin;
  std::size_t end;
};

// The part of [0, count) that `rank` of `size` ranks works on: contiguous, in rank order, of sizes that differ by one
// at most. Together they cover each index once; with fewer indices than ranks some are empty.
Shard shard(std::size_t count, int rank, int size);

// A permutation of [0, count) that depends on seed and epoch alone, on every machine.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t count);

}  // namespace digits

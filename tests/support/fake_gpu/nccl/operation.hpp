// One NCCL operation, as a rank issued it, and how the ranks carry it out.
#pragma once

#include <functional>

#include "support/fake_gpu/nccl/exchange.hpp"
#include "support/fake_gpu/nccl/reduction.hpp"

namespace fake_nccl {

enum class Collective {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send,
  receive
};

// Blocks of `count` elements: none, one, or one for each rank.
enum class Blocks { none, one, all };

// What the two buffers of a collective hold.
struct Shape {
  Blocks input, output;
  bool input_at_root = false, output_at_root = false;  // only there
  bool reduces = false;
};
const Shape& shape_of(Collective collective);

struct Operation {
  Collective collective;
  const char* input;  // where the host finds the data; null where the rank has none
  char* output;
  size_t count;  // as the call has it
  ncclDataType_t type;
  Reduction reduction;
  int root;               // root or peer
  uint64_t symmetry = 0;  // see TransferHead
  uint32_t grouped = 1;   // collectives in its group, this one included

  const Shape& shape() const { return shape_of(collective); }
  bool point_to_point() const { return collective == Collective::send || collective == Collective::receive; }
  size_t bytes() const { return count * bytes_of(type); }
};

// Where a rank runs operations.
struct Ring {
  const Segment& segment;
  int rank;
  TransferCounts& counts;
  const std::function<bool()>& stop;
};

// Runs what a rank issued together: first the collectives in order, each a meeting of all ranks, then all sends and
// receives at once. False when stopped.
bool run(const Ring& ring, const std::vector<Operation>& operations);

}  // namespace fake_nccl

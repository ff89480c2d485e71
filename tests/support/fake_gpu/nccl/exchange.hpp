// Moves bytes between the ranks of a communicator, all transfers of a batch at once.
#pragma once

#include <functional>
#include <vector>

#include "support/fake_gpu/nccl/segment.hpp"

namespace fake_nccl {

struct Transfer {
  int peer;
  char* bytes;
  TransferHead head;
};

struct Exchange {
  std::vector<Transfer> sends;     // to one peer: in this order
  std::vector<Transfer> receives;  // from one peer: in this order
};

// How many transfers a rank has begun with each peer, since the communicator's beginning.
struct TransferCounts {
  explicit TransferCounts(int size) : sent(size), received(size) {}
  std::vector<uint64_t> sent;
  std::vector<uint64_t> received;
};

// Returns when every transfer is done; false when `stop` says so first. A transfer whose fingerprint
// is another one at its peer is never done. Zero bytes are a transfer too: they tell that the peer has arrived.
bool exchange(const Segment& segment, int rank, TransferCounts& counts, Exchange transfers, const char* what,
              const std::function<bool()>& stop);

}  // namespace fake_nccl

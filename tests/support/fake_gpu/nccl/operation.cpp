#include "support/fake_gpu/nccl/operation.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "support/fake_gpu/common/settings.hpp"

namespace fake_nccl {
namespace {

// Reductions go through the data in blocks, so that their scratch memory stays small.
constexpr size_t kBlockBytes = 1 << 20;

// Ranks whose calls differ in any of these never pair.
uint64_t fingerprint_of(const Operation& operation, size_t block) {
  uint64_t hash = 0xcbf29ce484222325;
  const bool paired = operation.point_to_point();
  for (uint64_t part : {static_cast<uint64_t>(paired ? Collective::send : operation.collective),
                        static_cast<uint64_t>(operation.count), static_cast<uint64_t>(operation.type),
                        static_cast<uint64_t>(paired ? Reduction::Kind::sum : operation.reduction.kind),
                        static_cast<uint64_t>(paired ? 0 : operation.root), static_cast<uint64_t>(block)}) {
    hash = (hash ^ part) * 0x100000001b3;
  }
  return hash;
}

// What a rank gives to a peer in a collective that only moves data; null and zero bytes when nothing.
struct Slice {
  char* bytes = nullptr;
  size_t size = 0;
};

Slice to_peer(const Ring& ring, const Operation& operation, int peer) {
  char* input = const_cast<char*>(operation.input);
  const size_t bytes = operation.bytes();
  switch (operation.collective) {
    case Collective::broadcast:
      return ring.rank == operation.root ? Slice{input, bytes} : Slice{};
    case Collective::all_gather:
      return {input, bytes};
    case Collective::all_to_all:
      return {input + peer * bytes, bytes};
    case Collective::gather:
      return peer == operation.root ? Slice{input, bytes} : Slice{};
    case Collective::scatter:
      return ring.rank == operation.root ? Slice{input + peer * bytes, bytes} : Slice{};
    default:
      return {};
  }
}

Slice from_peer(const Ring& ring, const Operation& operation, int peer) {
  const size_t bytes = operation.bytes();
  switch (operation.collective) {
    case Collective::broadcast:
      return peer == operation.root ? Slice{operation.output, bytes} : Slice{};
    case Collective::all_gather:
    case Collective::all_to_all:
      return {operation.output + peer * bytes, bytes};
    case Collective::gather:
      return ring.rank == operation.root ? Slice{operation.output + peer * bytes, bytes} : Slice{};
    case Collective::scatter:
      return peer == operation.root ? Slice{operation.output, bytes} : Slice{};
    default:
      return {};
  }
}

bool move(const Ring& ring, const Operation& operation) {
  const uint64_t fingerprint = fingerprint_of(operation, 0);
  Exchange transfers;
  for (int peer = 0; peer < ring.segment.size(); ++peer) {
    const Slice out = to_peer(ring, operation, peer);
    const Slice in = from_peer(ring, operation, peer);
    if (peer == ring.rank) {
      if (in.size > 0 && in.bytes != out.bytes) std::memmove(in.bytes, out.bytes, in.size);
      continue;
    }
    transfers.sends.push_back({peer, out.bytes, {fingerprint, out.size}});
    transfers.receives.push_back({peer, in.bytes, {fingerprint, in.size}});
  }
  return exchange(ring.segment, ring.rank, ring.counts, std::move(transfers), "an NCCL collective", ring.stop);
}

// Whether this rank gets the result of what the ranks reduce, and where its part begins in every rank's input.
struct Share {
  bool wanted;
  size_t offset;
};

Share share_of(const Operation& operation, int rank) {
  switch (operation.collective) {
    case Collective::reduce:
      return {rank == operation.root, 0};
    case Collective::reduce_scatter:
      return {true, rank * operation.bytes()};
    default:
      return {true, 0};
  }
}

// One block: every rank gives each peer its part of the block, and combines what it gets in the order of the ranks.
bool reduce_block(const Ring& ring, const Operation& operation, size_t from, size_t bytes) {
  const uint64_t fingerprint = fingerprint_of(operation, from);
  const int size = ring.segment.size();
  const Share own = share_of(operation, ring.rank);
  const size_t count = bytes / bytes_of(operation.type);
  std::vector<std::vector<char>> scratch(size), given(size);
  std::vector<const char*> inputs(size);
  Exchange transfers;
  for (int peer = 0; peer < size; ++peer) {
    const Share theirs = share_of(operation, peer);
    char* part = const_cast<char*>(operation.input) + theirs.offset + from;
    if (theirs.wanted && scales(operation.type, operation.reduction)) {
      given[peer] = scaled(operation.type, operation.reduction, static_cast<size_t>(size), part, count);
      part = given[peer].data();
    }
    if (peer == ring.rank) {
      inputs[peer] = part;
      continue;
    }
    transfers.sends.push_back({peer, part, {fingerprint, theirs.wanted ? bytes : 0}});
    scratch[peer].resize(own.wanted ? bytes : 0);
    inputs[peer] = scratch[peer].data();
    transfers.receives.push_back({peer, scratch[peer].data(), {fingerprint, scratch[peer].size()}});
  }
  if (!exchange(ring.segment, ring.rank, ring.counts, std::move(transfers), "an NCCL reduction", ring.stop)) {
    return false;
  }
  if (own.wanted) {
    reduce(operation.type, operation.reduction, inputs, operation.output + from, count);
  }
  return true;
}

// A planted mistake, for programs that have to notice it: FAKE_NCCL_SPOIL.
void spoil(char* bytes, size_t size) {
  static const std::string where = fake_gpu::text_setting("FAKE_NCCL_SPOIL", "");
  if (where.empty() || size == 0) return;
  if (where != "inside" && where != "beside") fake_gpu::die("FAKE_NCCL_SPOIL is neither 'inside' nor 'beside'");
  bytes[where == "inside" ? size - 1 : size] ^= 1;
}

bool run_collective(const Ring& ring, const Operation& operation) {
  switch (operation.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
      for (size_t from = 0; from < operation.bytes(); from += kBlockBytes) {
        if (!reduce_block(ring, operation, from, std::min(kBlockBytes, operation.bytes() - from))) return false;
      }
      if (share_of(operation, ring.rank).wanted) spoil(operation.output, operation.bytes());
      return true;
    default:
      return move(ring, operation);
  }
}

}  // namespace

bool run(const Ring& ring, const std::vector<Operation>& operations) {
  Exchange transfers;
  for (const Operation& operation : operations) {
    if (!operation.point_to_point()) {
      if (!run_collective(ring, operation)) return false;
      continue;
    }
    const TransferHead head{fingerprint_of(operation, 0), operation.bytes()};
    if (operation.collective == Collective::send) {
      transfers.sends.push_back({operation.root, const_cast<char*>(operation.input), head});
    } else {
      transfers.receives.push_back({operation.root, operation.output, head});
    }
  }
  if (transfers.sends.empty() && transfers.receives.empty()) return true;
  return exchange(ring.segment, ring.rank, ring.counts, std::move(transfers), "an NCCL send or receive", ring.stop);
}

}  // namespace fake_nccl

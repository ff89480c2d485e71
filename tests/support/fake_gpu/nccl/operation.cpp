#include "support/fake_gpu/nccl/operation.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "support/fake_gpu/common.hpp"

namespace fake_nccl {
namespace {

// Reductions go through the data in blocks, so that their scratch memory stays small.
constexpr size_t kBlockBytes = 1 << 20;

// The slots that ranks pass each other by the SIMPLE protocol: of the size of NCCL's, an eighth of 4 MiB.
constexpr size_t kSlotBytes = 1 << 19;
// The lines of the LL protocol: 8 bytes of data, with a flag for each 4.
constexpr size_t kLineBytes = 8;

// NCCL_PROTO, as NCCL reads it, of which the stand-in knows these two.
bool has_lines() {
  static const bool told = fake_gpu::text_setting("NCCL_PROTO", "Simple") == "LL";
  return told;
}

size_t steps_of(size_t bytes) {
  const size_t step = has_lines() ? kLineBytes : kSlotBytes;
  return (bytes + step - 1) / step;
}

// Ranks whose calls differ in any of these never pair. What is in the slots, nobody compares: not how much of one is
// filled, nor by which operator, with which root and of which type.
uint64_t fingerprint_of(const Operation& operation, size_t block) {
  uint64_t hash = 0xcbf29ce484222325;
  const bool paired = operation.point_to_point();
  for (uint64_t part : {static_cast<uint64_t>(paired ? Collective::send : operation.collective),
                        static_cast<uint64_t>(steps_of(operation.bytes())), static_cast<uint64_t>(block),
                        static_cast<uint64_t>(paired ? 0 : operation.grouped)}) {
    hash = (hash ^ part) * 0x100000001b3;
  }
  return hash;
}

// What `from` gives to `to` in a collective that only moves data: whether it gives anything, and where that is in the
// buffers of the two.
struct Gift {
  bool given;
  size_t in_input, in_output;
};

Gift gift_of(const Operation& operation, int from, int to) {
  const Shape& shape = operation.shape();
  const bool given =
      (!shape.input_at_root || from == operation.root) && (!shape.output_at_root || to == operation.root);
  const size_t bytes = operation.bytes();
  return {given, shape.input == Blocks::all ? to * bytes : 0, shape.output == Blocks::all ? from * bytes : 0};
}

bool move(const Ring& ring, const Operation& operation) {
  const uint64_t fingerprint = fingerprint_of(operation, 0);
  Exchange transfers;
  for (int peer = 0; peer < ring.segment.size(); ++peer) {
    const Gift out = gift_of(operation, ring.rank, peer), in = gift_of(operation, peer, ring.rank);
    char* const from = out.given ? const_cast<char*>(operation.input) + out.in_input : nullptr;
    char* const to = in.given ? operation.output + in.in_output : nullptr;
    if (peer == ring.rank) {
      if (in.given && operation.bytes() > 0 && to != from) std::memmove(to, from, operation.bytes());
      continue;
    }
    transfers.sends.push_back({peer, from, {fingerprint, out.given ? operation.bytes() : 0, operation.symmetry}});
    transfers.receives.push_back({peer, to, {fingerprint, in.given ? operation.bytes() : 0, operation.symmetry}});
  }
  return exchange(ring.segment, ring.rank, ring.counts, std::move(transfers), "an NCCL collective", ring.stop);
}

// Whether this rank gets the result of what the ranks reduce, and where its part begins in every rank's input.
struct Share {
  bool wanted;
  size_t offset;
};

Share share_of(const Operation& operation, int rank) {
  const Shape& shape = operation.shape();
  return {!shape.output_at_root || rank == operation.root, shape.input == Blocks::all ? rank * operation.bytes() : 0};
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
    transfers.sends.push_back({peer, part, {fingerprint, theirs.wanted ? bytes : 0, operation.symmetry}});
    scratch[peer].resize(own.wanted ? bytes : 0);
    inputs[peer] = scratch[peer].data();
    transfers.receives.push_back({peer, scratch[peer].data(), {fingerprint, scratch[peer].size(), operation.symmetry}});
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
  if (!operation.shape().reduces) return move(ring, operation);
  for (size_t from = 0; from < operation.bytes(); from += kBlockBytes) {
    if (!reduce_block(ring, operation, from, std::min(kBlockBytes, operation.bytes() - from))) return false;
  }
  if (share_of(operation, ring.rank).wanted) spoil(operation.output, operation.bytes());
  return true;
}

}  // namespace

const Shape& shape_of(Collective collective) {
  // In the order of the enumerators.
  static constexpr Shape kShapes[] = {
      {.input = Blocks::one, .output = Blocks::one, .reduces = true},
      {.input = Blocks::one, .output = Blocks::one, .output_at_root = true, .reduces = true},
      {.input = Blocks::one, .output = Blocks::one, .input_at_root = true},
      {.input = Blocks::one, .output = Blocks::all},
      {.input = Blocks::all, .output = Blocks::one, .reduces = true},
      {.input = Blocks::all, .output = Blocks::all},
      {.input = Blocks::one, .output = Blocks::all, .output_at_root = true},
      {.input = Blocks::all, .output = Blocks::one, .input_at_root = true},
      {.input = Blocks::one, .output = Blocks::none},
      {.input = Blocks::none, .output = Blocks::one},
  };
  return kShapes[static_cast<size_t>(collective)];
}

namespace {

// What the operation is about to write is spoilt until it has been written. In place, the input is kept apart: who runs
// the operation owns it.
std::vector<char> spoil_output(const Ring& ring, Operation& operation) {
  std::vector<char> kept;
  if (!fake_gpu::harsh() || operation.output == nullptr || operation.bytes() == 0) return kept;
  const auto extent = [&](Blocks blocks) {
    return operation.bytes() * (blocks == Blocks::all ? static_cast<size_t>(ring.segment.size()) : 1);
  };
  const Shape& shape = operation.shape();
  const size_t bytes = extent(shape.output);
  if (operation.input != nullptr && shape.input != Blocks::none) {
    const size_t read = extent(shape.input);
    const bool apart = operation.input + read <= operation.output || operation.output + bytes <= operation.input;
    if (!apart) {
      kept.assign(operation.input, operation.input + read);
      operation.input = kept.data();
    }
  }
  std::memset(operation.output, 0x5B, bytes);
  fake_gpu::pause_at_random();
  return kept;
}

}  // namespace

bool run(const Ring& ring, const std::vector<Operation>& operations) {
  Exchange transfers;
  for (const Operation& issued : operations) {
    Operation operation = issued;
    const std::vector<char> kept = spoil_output(ring, operation);
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

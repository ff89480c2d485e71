#include "backend/shm/native/cma.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/native/movement.hpp"
#include "backend/shm/native/process_memory.hpp"
#include "core/hash.hpp"
#include "core/kernels/fold.hpp"
#include "core/log.hpp"
#include "core/mapping.hpp"

namespace col::shm_backend {
namespace {

// What is read before it is folded stays in the second-level cache meanwhile.
constexpr std::size_t kFoldedAtOnce = std::size_t{256} << 10;

// Each rank has a block for each, or folds what others have: in place, it would overwrite what they have yet to read,
// or has no place for what it reads.
bool needs_both(const Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  return row.reduces() || (row.in == Extent::blocks && row.out == Extent::blocks);
}

}  // namespace

// ---- Reading

Cma::Cma(std::string group, int rank, std::uint64_t token)
    : group_(std::move(group)), rank_(rank), pid_(::getpid()), proof_(core::Hash().add(token).add(rank).value()) {}

Identity Cma::identity() const noexcept {
  return {.pid = pid_,
          .proof_at = reinterpret_cast<std::uintptr_t>(&proof_),
          .proof = proof_,
          .reaches_all = reaches_all_ ? 1U : 0U};
}

void Cma::learn(std::span<const Presence> all) {
  if (state_ == State::unknown) {
    state_ = State::tried;
    int error = 0;
    reaches_all_ = std::all_of(all.begin(), all.end(), [&](const Presence& presence) {
      const Identity& other = presence.identity;
      std::uint64_t seen = 0;
      errno = 0;
      const bool read = read_memory(other.pid, other.proof_at, &seen, sizeof seen) == sizeof seen;
      error = errno;
      return read && seen == other.proof;
    });
    pids_.clear();
    for (const Presence& other : all) pids_.push_back(other.identity.pid);
    if (!reaches_all_)
      core::log::info(
          "group '{}': rank {} cannot read the memory of all others through the kernel ({}); data goes "
          "through shared memory",
          group_, rank_, error != 0 ? std::generic_category().message(error) : "another process is there");
  } else if (state_ == State::tried) {
    const bool works =
        std::all_of(all.begin(), all.end(), [](const Presence& other) { return other.identity.reaches_all != 0; });
    state_ = works ? State::yes : State::no;
  }
}

bool Cma::all_have_read(std::span<const Presence> all) noexcept {
  if (!std::all_of(all.begin(), all.end(), [](const Presence& each) { return each.identity.reaches_all != 0; }))
    state_ = State::no;
  return state_ == State::yes;
}

bool Cma::read(int rank, std::uint64_t from, std::byte* to, std::size_t bytes,
               const std::function<void()>& rest) const {
  const std::int64_t pid = pids_[static_cast<std::size_t>(rank)];
  while (bytes > 0) {
    const ssize_t got = read_memory(pid, from, to, std::min(bytes, kReadAtOnce));
    if (got <= 0) {
      const int error = errno;
      rest();  // throws the reason, if the group has ended
      if (got < 0 && error == ESRCH)
        throw Error(ErrorCode::peer_lost, fmt::format("rank {} has ended while its memory was read", rank), group_,
                    rank);
      core::log::info(
          "group '{}': rank {} cannot read memory of rank {} through the kernel ({}); data goes through "
          "shared memory from now on",
          group_, rank_, rank, got == 0 ? "nothing there" : std::generic_category().message(error));
      return false;
    }
    from += static_cast<std::uint64_t>(got);
    to += got;
    bytes -= static_cast<std::size_t>(got);
    if (bytes > 0) rest();
  }
  return true;
}

// ---- Collectives

std::optional<KernelCall> CmaCollective::call_of(const Request& request, int size) noexcept {
  const CollectiveRow& row = row_of(request.collective);
  if (row.reduces()) {
    const bool is_whole = row.folds == Folds::all && row.out == Extent::vector;
    // Who folds reads all that others have: with more of them, slices are less work.
    if (!is_whole || size != 2 || request.op.kind() != Op::Kind::builtin) return std::nullopt;
    return KernelCall{row.rooted ? KernelShape::vector_to_one : KernelShape::vector_of_each, request.in.bytes()};
  }
  if (row.has_private_counts() || row.out == Extent::nothing) return std::nullopt;
  if (row.out_on_root) return KernelCall{KernelShape::blocks_to_one, request.in.bytes()};
  if (row.out == Extent::vector) return KernelCall{KernelShape::vector_of_one, request.out.bytes()};
  const KernelShape shape = row.in_on_root             ? KernelShape::blocks_of_one
                            : row.in == Extent::blocks ? KernelShape::blocks_of_each
                                                       : KernelShape::block_of_each;
  return KernelCall{shape, Movement::length_of(request, size) * size_of(request.out.dtype)};
}

bool CmaCollective::suits(const Request& request, int size, const Tuning& tuning) noexcept {
  const auto call = call_of(request, size);
  return call && tuning.goes_by_kernel(call->shape, call->bytes);
}

Addresses CmaCollective::addresses(const Request& request, int rank) noexcept {
  const auto number = [](const void* memory) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
  };
  if (needs_both(request) && request.in.data == request.out.data) return {};
  // A rank may write there what another one has yet to read, in its own input or output.
  const auto is_shared = [](ConstTensorView side) {
    return !side.empty() && core::may_be_shared(side.data, side.bytes());
  };
  const CollectiveRow& row = row_of(request.collective);
  if (row.reduces() && (is_shared(request.in) || (row.has_output(rank == request.root) && is_shared(request.out))))
    return {};
  return {number(request.in.data), number(request.out.data)};
}

bool CmaCollective::possible() const noexcept {
  return !needs_both(request_) ||
         std::all_of(all_.begin(), all_.end(), [](const Presence& each) { return each.addresses.in != 0; });
}

bool CmaCollective::run(const Cma& cma, const std::function<void()>& rest) const {
  const auto at = [&](int rank) -> const Addresses& { return all_[static_cast<std::size_t>(rank)].addresses; };
  const int root = request_.root;
  const bool is_root = rank_ == root;
  const auto own = static_cast<std::uint64_t>(rank_);
  auto* const out = static_cast<std::byte*>(request_.out.data);
  const auto* const in = static_cast<const std::byte*>(request_.in.data);
  const CollectiveRow& row = row_of(request_.collective);
  if (row.reduces()) return (row.rooted && !is_root) || fold(cma, rest);
  if (row.out == Extent::vector) return is_root || cma.read(root, at(root).out, out, request_.out.bytes(), rest);
  if (row.in_on_root) {
    const std::size_t bytes = request_.out.bytes();
    if (!is_root) return cma.read(root, at(root).in + own * bytes, out, bytes, rest);
    if (out != in + own * bytes) std::memcpy(out, in + own * bytes, bytes);
    return true;
  }
  if (row.out_on_root && !is_root) return true;
  // A block from each, from the next rank on, so that not all read the same memory at once.
  const std::size_t size = size_of(request_.in.dtype);
  const auto block = [&](int rank) {
    return block_of(rank, request_.out_counts, request_.out.count / static_cast<std::size_t>(size_));
  };
  for (int i = 1; i <= size_; ++i) {
    const int peer = (rank_ + i) % size_;
    const ElementRange theirs = block(peer);
    const std::size_t offset = row.in == Extent::blocks ? block(rank_).begin * size : 0;
    std::byte* const to = out + theirs.begin * size;
    const std::size_t bytes = theirs.count * size;
    if (peer != rank_ && !cma.read(peer, at(peer).in + offset, to, bytes, rest)) return false;
    if (peer == rank_ && bytes > 0 && to != in + offset) std::memcpy(to, in + offset, bytes);
  }
  return true;
}

// What the other rank has goes to where the result will be, piece by piece: folding finds it in the cache.
bool CmaCollective::fold(const Cma& cma, const std::function<void()>& rest) const {
  const DType dtype = request_.in.dtype;
  const std::size_t size = size_of(dtype), most = kFoldedAtOnce / size;
  const int peer = 1 - rank_;
  const std::uint64_t theirs = all_[static_cast<std::size_t>(peer)].addresses.in;
  const auto* const in = static_cast<const std::byte*>(request_.in.data);
  auto* const out = static_cast<std::byte*>(request_.out.data);
  for (std::size_t begin = 0; begin < request_.in.count; begin += most) {
    if (begin > 0) rest();
    const std::size_t count = std::min(most, request_.in.count - begin), at = begin * size;
    if (!cma.read(peer, theirs + at, out + at, count * size, rest)) return false;
    std::array<const std::byte*, 2> inputs;
    inputs[static_cast<std::size_t>(rank_)] = in + at;
    inputs[static_cast<std::size_t>(peer)] = out + at;
    core::fold(request_.op, dtype, false, inputs, inputs.size(), {out + at}, {}, count);
  }
  return true;
}

}  // namespace col::shm_backend

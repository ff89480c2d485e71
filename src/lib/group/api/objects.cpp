// What the object forms of the collectives are made of: blocks of bytes whose sizes the receivers do not know.
#include <cstddef>
#include <cstring>
#include <exception>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "group/call/composite.hpp"
#include "group/state.hpp"

namespace col {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> cut(const Bytes& all, const std::vector<std::size_t>& counts) {
  std::vector<Bytes> blocks;
  auto at = all.begin();
  for (const std::size_t count : counts) {
    blocks.emplace_back(at, at + static_cast<std::ptrdiff_t>(count));
    at += static_cast<std::ptrdiff_t>(count);
  }
  return blocks;
}

std::size_t total(const std::vector<std::size_t>& counts) {
  return std::reduce(counts.begin(), counts.end(), std::size_t{0});
}

// Memory for what the others are about to send; without it the group breaks, as they wait for this rank.
Bytes allocate(std::size_t size, Group::State& state) {
  try {
    return Bytes(size);
  } catch (const std::exception&) {  // bad_alloc or length_error
    const group::Use use(state.access());
    group::Core& core = state.core();
    core.fail(Error(ErrorCode::resource, fmt::format("no memory for objects of {} bytes together", size), core.name(),
                    core.rank()));
  }
}

struct Blocks {
  std::span<const std::size_t> in = {}, out = {};
};

// Objects are in host memory on every rank.
void run_on_host(Group::State& state, Collective collective, ConstTensorView in, TensorView out, const Options& options,
                 const Blocks& counts = {}) {
  Request request;
  request.collective = collective;
  request.in = in;
  request.out = out;
  request.in_counts = counts.in;
  request.out_counts = counts.out;
  request.root = options.root;
  state.collectives().run_on_host(request, options);
}

}  // namespace

void detail::check_object_size(std::size_t bytes, std::size_t unit, bool exact) {
  if (exact ? bytes == unit : bytes % unit == 0) return;
  throw Error(
      ErrorCode::mismatch,
      fmt::format("an object of {} bytes arrived where {} {} bytes are expected; both sides must use the same type",
                  bytes, exact ? "exactly" : "a multiple of", unit));
}

Bytes Group::broadcast_bytes(std::span<const std::byte> bytes, const Options& options) {
  const group::Composite composite("broadcast_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  std::uint64_t size = bytes.size();
  run_on_host(state(), Collective::broadcast, {}, TensorView(&size, 1, DType::uint64), options);
  Bytes result = allocate(rank() == options.root ? 0 : size, state());
  if (rank() == options.root) result.assign(bytes.begin(), bytes.end());
  run_on_host(state(), Collective::broadcast, {}, result, options);
  return result;
}

std::vector<Bytes> Group::allgather_bytes(std::span<const std::byte> bytes, const Options& options) {
  const group::Composite composite("allgather_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  const std::uint64_t own = bytes.size();
  std::vector<std::size_t> counts(static_cast<std::size_t>(size()));
  run_on_host(state(), Collective::allgather, ConstTensorView(&own, 1, DType::uint64),
              TensorView(counts.data(), counts.size(), DType::uint64), options);
  Bytes all = allocate(total(counts), state());
  run_on_host(state(), Collective::allgatherv, bytes, all, options, {.out = counts});
  return cut(all, counts);
}

std::vector<Bytes> Group::gather_bytes(std::span<const std::byte> bytes, const Options& options) {
  const group::Composite composite("gather_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  const std::uint64_t own = bytes.size();
  const bool is_root = rank() == options.root;
  std::vector<std::size_t> counts(is_root ? static_cast<std::size_t>(size()) : 0);
  run_on_host(state(), Collective::gather, ConstTensorView(&own, 1, DType::uint64),
              TensorView(counts.data(), counts.size(), DType::uint64), options);
  Bytes all = allocate(total(counts), state());
  run_on_host(state(), Collective::gatherv, bytes, all, options, {.out = counts});
  return is_root ? cut(all, counts) : std::vector<Bytes>();
}

Bytes Group::scatter_bytes(const std::vector<std::span<const std::byte>>& blocks, const Options& options) {
  const group::Composite composite("scatter_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  const bool is_root = rank() == options.root;
  if (is_root && blocks.size() != static_cast<std::size_t>(size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("scatter_object: {} objects for {} ranks; give one per rank", blocks.size(), size()),
                name(), rank());
  std::vector<std::size_t> counts;
  Bytes all;
  for (const auto& block : blocks) {
    counts.push_back(block.size());
    all.insert(all.end(), block.begin(), block.end());
  }
  std::uint64_t own = 0;
  run_on_host(state(), Collective::scatter, ConstTensorView(counts.data(), counts.size(), DType::uint64),
              TensorView(&own, 1, DType::uint64), options);
  Bytes result = allocate(own, state());
  run_on_host(state(), Collective::scatterv, all, result, options, {.in = counts});
  return result;
}

void Group::send_bytes(std::span<const std::byte> bytes, int destination, const Options& options) {
  const group::Composite composite("send_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  const std::uint64_t size = bytes.size();
  send(ConstTensorView(&size, 1, DType::uint64), destination, options);
  send(bytes, destination, options);
}

Bytes Group::recv_bytes(int source, const Options& options) {
  const group::Composite composite("recv_object");
  const group::Turn turn(state().access(), state().core().timeout_of(options));
  std::uint64_t size = 0;
  recv(TensorView(&size, 1, DType::uint64), source, options);
  Bytes result = allocate(size, state());
  recv(result, source, options);
  return result;
}

}  // namespace col

#include "colcheck/selftest/planted_channel.hpp"

#include <algorithm>
#include <numeric>

#include "common/reference.hpp"

namespace col::colcheck {
namespace {

// Counts that this rank does not know are filled with others: it does not need them.
tools::ReferenceCall call_of(const col::Request& request, int rank, int size) {
  const CollectiveRow& row = row_of(request.collective);
  const auto n = static_cast<std::size_t>(size), me = static_cast<std::size_t>(rank);
  const bool gets_its_part = row.in == Extent::blocks || row.in == Extent::nothing;
  tools::ReferenceCall call{.collective = request.collective,
                            .size = size,
                            .root = request.root,
                            .count = gets_its_part ? request.out.count : request.in.count};
  if (row.in == Extent::blocks && row.out == Extent::blocks) call.count /= n;
  if (!row.has_counts()) return call;
  if (row.counts == BlockCounts::pairs) {
    call.counts.resize(n * n);
    for (std::size_t r = 0; r < n; ++r) {
      call.counts[me * n + r] = request.in_counts[r];
      call.counts[r * n + me] = request.out_counts[r];
    }
    return call;
  }
  const auto given = request.in_counts.empty() ? request.out_counts : request.in_counts;
  call.counts.assign(given.begin(), given.end());
  call.counts.resize(n, call.count);
  return call;
}

}  // namespace

std::size_t length_of_one(const col::Request& request, int rank, int size) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.has_counts()) return std::reduce(request.in_counts.begin(), request.in_counts.end());
  if (row.out == Extent::block) return request.out.count * static_cast<std::size_t>(size);
  const bool has_output = row.has_output(rank == request.root);
  return has_output ? request.out.count : request.in.count / request.shares[static_cast<std::size_t>(rank)];
}

Traffic traffic_of(const col::Request& request, int rank, int size) {
  if (request.order == Order::tree) {  // all that a rank gives goes to every other one
    Traffic traffic;
    traffic.to.assign(static_cast<std::size_t>(size), Block{0, request.in.count});
    const std::size_t length = length_of_one(request, rank, size);
    for (const std::size_t share : request.shares) traffic.from.emplace_back(Block{0, share * length});
    return traffic;
  }
  const tools::ReferenceCall call = call_of(request, rank, size);
  const auto brought = input_blocks(call, rank);
  const auto n = static_cast<std::size_t>(size), me = static_cast<std::size_t>(rank);
  Traffic traffic;
  traffic.to.resize(n);
  traffic.from.resize(n);
  if (request.collective == Collective::barrier) traffic.to.assign(n, Block{}), traffic.from.assign(n, Block{});
  for (std::size_t r = 0; r < n; ++r) {
    for (const tools::Segment& part : output_segments(call, static_cast<int>(r)))
      if (part.first <= rank && rank < part.last)
        traffic.to[r] = Block{tools::begin_of(brought, part.block), part.count};
  }
  std::size_t offset = 0;
  for (const tools::Segment& part : output_segments(call, rank)) {
    std::fill(traffic.from.begin() + part.first, traffic.from.begin() + part.last, Block{offset, part.count});
    offset += part.count;
  }
  // Nothing goes through these to the rank itself.
  if (row_of(request.collective).in == Extent::nothing) traffic.to[me] = traffic.from[me] = {};
  return traffic;
}

ConstTensorView source_of(const col::Request& request) {
  return request.collective == Collective::broadcast ? ConstTensorView(request.out) : request.in;
}

DType dtype_of(const col::Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  return row.in == Extent::nothing || row.in_on_root ? request.out.dtype : request.in.dtype;
}

}  // namespace col::colcheck

#include "colcheck/selftest/traffic.hpp"

#include <numeric>
#include <span>

namespace col::colcheck {
namespace {

using Blocks = std::vector<std::optional<Block>>;

class Builder {
 public:
  Builder(const Request& request, int rank, int size)
      : request_(request), rank_(rank), size_(size), is_root_(rank == request.root) {}

  Traffic build() const {
    const std::size_t in = request_.in.count, out = request_.out.count, n = count_of(size_);
    switch (request_.collective) {
      case Collective::allreduce:
        return {ranks(0, size_, {0, in}), ranks(0, size_, {0, in})};
      case Collective::reduce:
        return {only_root({0, in}), is_root_ ? ranks(0, size_, {0, in}) : none()};
      case Collective::scan:
        return {ranks(rank_, size_, {0, in}), ranks(0, rank_ + 1, {0, in})};
      case Collective::exscan:
        return {ranks(rank_ + 1, size_, {0, in}), ranks(0, rank_, {0, in})};
      case Collective::reduce_scatter:
        return {equal(out), ranks(0, size_, {0, out})};
      case Collective::reduce_scatterv:
        return {uneven(request_.in_counts), ranks(0, size_, {0, out})};
      case Collective::broadcast:
        return is_root_ ? Traffic{others({0, out}), none()} : Traffic{none(), only_root({0, out})};
      case Collective::allgather:
        return {ranks(0, size_, {0, in}), equal(in)};
      case Collective::allgatherv:
        return {ranks(0, size_, {0, in}), uneven(request_.out_counts)};
      case Collective::gather:
        return {only_root({0, in}), is_root_ ? equal(in) : none()};
      case Collective::gatherv:
        return {only_root({0, in}), is_root_ ? uneven(request_.out_counts) : none()};
      case Collective::scatter:
        return {is_root_ ? equal(out) : none(), only_root({0, out})};
      case Collective::scatterv:
        return {is_root_ ? uneven(request_.in_counts) : none(), only_root({0, out})};
      case Collective::alltoall:
        return {equal(in / n), equal(in / n)};
      case Collective::alltoallv:
        return {uneven(request_.in_counts), uneven(request_.out_counts)};
      default:
        return {others({0, 0}), others({0, 0})};
    }
  }

 private:
  static std::size_t count_of(int ranks) { return static_cast<std::size_t>(ranks); }
  Blocks none() const { return Blocks(count_of(size_)); }

  // The same for the ranks [begin, end).
  Blocks ranks(int begin, int end, Block block) const {
    Blocks blocks = none();
    for (int r = begin; r < end; ++r) blocks[count_of(r)] = block;
    return blocks;
  }
  Blocks others(Block block) const {
    Blocks blocks = ranks(0, size_, block);
    blocks[count_of(rank_)].reset();
    return blocks;
  }
  Blocks only_root(Block block) const { return ranks(request_.root, request_.root + 1, block); }

  // One after the other.
  Blocks equal(std::size_t count) const { return uneven(std::vector<std::size_t>(count_of(size_), count)); }
  Blocks uneven(std::span<const std::size_t> counts) const {
    Blocks blocks;
    std::size_t offset = 0;
    for (const std::size_t count : counts) {
      blocks.push_back(Block{offset, count});
      offset += count;
    }
    return blocks;
  }

  const Request& request_;
  int rank_, size_;
  bool is_root_;
};

}  // namespace

Traffic traffic_of(const Request& request, int rank, int size) {
  return Builder(request, rank, size).build();
}

ConstTensorView source_of(const Request& request) {
  return request.collective == Collective::broadcast ? ConstTensorView(request.out) : request.in;
}

DType dtype_of(const Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  return row.in == Extent::nothing || row.in_on_root ? request.out.dtype : request.in.dtype;
}

}  // namespace col::colcheck

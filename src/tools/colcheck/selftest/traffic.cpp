#include "colcheck/selftest/planted_channel.hpp"

#include <numeric>
#include <span>

namespace col::colcheck {
namespace {

using Blocks = std::vector<std::optional<Block>>;

class Builder {
 public:
  Builder(const col::Request& request, int rank, int size)
      : request_(request), rank_(rank), size_(size), is_root_(rank == request.root) {}

  Traffic build() const {
    const CollectiveRow& row = row_of(request_.collective);
    if (row.out == Extent::nothing) return {others({0, 0}), others({0, 0})};
    if (row.in == Extent::nothing)
      return is_root_ ? Traffic{others(own_out()), none()} : Traffic{none(), only_root(own_out())};
    return {row.has_input(is_root_) ? to(row) : none(), row.has_output(is_root_) ? from(row) : none()};
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
  Block own_in() const { return {0, request_.in.count}; }
  Block own_out() const { return {0, request_.out.count}; }

  Blocks to(const CollectiveRow& row) const {
    if (row.in == Extent::blocks) return each(request_.in, request_.in_counts);
    if (row.out_on_root) return only_root(own_in());
    const int first = row.folds == Folds::up_to_rank ? rank_ : row.folds == Folds::below_rank ? rank_ + 1 : 0;
    return ranks(first, size_, own_in());
  }
  Blocks from(const CollectiveRow& row) const {
    if (row.out == Extent::blocks) return each(request_.out, request_.out_counts);
    if (row.in_on_root) return only_root(own_out());
    const int end = row.folds == Folds::up_to_rank ? rank_ + 1 : row.folds == Folds::below_rank ? rank_ : size_;
    return ranks(0, end, own_out());
  }

  Blocks only_root(Block block) const { return ranks(request_.root, request_.root + 1, block); }

  // One after the other.
  Blocks each(ConstTensorView all, std::span<const std::size_t> counts) const {
    if (!counts.empty()) return uneven(counts);
    return uneven(std::vector<std::size_t>(count_of(size_), all.count / count_of(size_)));
  }
  Blocks uneven(std::span<const std::size_t> counts) const {
    Blocks blocks;
    std::size_t offset = 0;
    for (const std::size_t count : counts) {
      blocks.push_back(Block{offset, count});
      offset += count;
    }
    return blocks;
  }

  const col::Request& request_;
  int rank_, size_;
  bool is_root_;
};

}  // namespace

Traffic traffic_of(const col::Request& request, int rank, int size) {
  return Builder(request, rank, size).build();
}

ConstTensorView source_of(const col::Request& request) {
  return request.collective == Collective::broadcast ? ConstTensorView(request.out) : request.in;
}

DType dtype_of(const col::Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  return row.in == Extent::nothing || row.in_on_root ? request.out.dtype : request.in.dtype;
}

}  // namespace col::colcheck

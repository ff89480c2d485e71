// Strategy "zero", after the first stage of ZeRO: the state of the optimizer is cut over the ranks. An allreduce is a
// reduce_scatter and an allgather; here the step is taken between the two, by the rank that has the sum. So each of n
// ranks keeps 1/n of the velocity, and the bytes on the wire are those of an allreduce.
//
// Rajbhandari, Rasley, Ruwase, He: ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020.
#include <utility>

#include "strategies/data_parallel.hpp"

namespace digits {
namespace {

class Zero final : public Exchange {
 public:
  Zero(col::Group world, std::size_t count)
      : world_(std::move(world)), own_(shard(count, world_.rank(), world_.size())) {
    for (int rank = 0; rank < world_.size(); ++rank) {
      const Shard block = shard(count, rank, world_.size());
      counts_.push_back(block.end - block.begin);
    }
  }

  Shard own() const override { return own_; }

  // Both in place: the shorter buffer is this rank's block of the longer one.
  void sum(std::span<float> values) override { world_.reduce_scatterv(values, block(values), counts_); }
  void share(std::span<float> values) override { world_.allgatherv(block(values), values, counts_); }

  std::string text(std::size_t own, std::size_t all) const override {
    return "strategy zero: rank 0 keeps " + std::to_string(own) + " of " + std::to_string(all) + " velocities";
  }

 private:
  std::span<float> block(std::span<float> values) const { return values.subspan(own_.begin, own_.end - own_.begin); }

  col::Group world_;
  Shard own_;
  std::vector<std::size_t> counts_;  // of each rank's block
};

}  // namespace

std::unique_ptr<Exchange> make_zero(col::Group world, std::size_t count) {
  return std::make_unique<Zero>(std::move(world), count);
}

}  // namespace digits

// Strategy "ps": a parameter server that is cut over the ranks, in step. Every rank is a worker, and also the server of
// its block of the parameters and of their velocity. A step is two rounds of messages:
//
//   push  each worker sends block r of its gradient to rank r, which adds the n blocks up in rank order, and steps
//   pull  each server sends its new block to every worker
//
// Each rank sends n - 1 blocks in each round, 2 (n - 1) / n vectors in all, as in a ring allreduce; but they leave at
// once, not one after another. With messages of its own choice, a rank could also go on without waiting for all others:
// see ps_async.cpp.
//
// Li and others: Scaling Distributed Machine Learning with the Parameter Server, OSDI 2014.
#include <algorithm>
#include <functional>
#include <utility>

#include "strategies/data_parallel.hpp"

namespace digits {
namespace {

class ParameterServer final : public Exchange {
 public:
  ParameterServer(col::Group world, std::size_t count) : world_(std::move(world)) {
    for (int rank = 0; rank < world_.size(); ++rank) shards_.push_back(shard(count, rank, world_.size()));
    pushed_.resize(shards_.size() * size(own()));
  }

  Shard own() const override { return shards_[static_cast<std::size_t>(world_.rank())]; }

  void sum(std::span<float> values) override {
    std::vector<col::Message> messages;
    for_each_other([&](int rank, Shard theirs) {
      messages.push_back(col::Message::send(block(values, theirs), rank));
      messages.push_back(col::Message::recv(pushed_from(rank), rank));
    });
    world_.batch(messages);

    // In rank order, whatever came first, so that every run has the same bits.
    const std::span<float> mine = block(values, own());
    std::copy(mine.begin(), mine.end(), pushed_from(world_.rank()).begin());
    std::copy_n(pushed_.begin(), mine.size(), mine.begin());
    for (int rank = 1; rank < world_.size(); ++rank) {
      std::transform(mine.begin(), mine.end(), pushed_from(rank).begin(), mine.begin(), std::plus<>());
    }
  }

  void share(std::span<float> values) override {
    std::vector<col::Message> messages;
    for_each_other([&](int rank, Shard theirs) {
      messages.push_back(col::Message::send(block(values, own()), rank));
      messages.push_back(col::Message::recv(block(values, theirs), rank));
    });
    world_.batch(messages);
  }

  std::string text(std::size_t own, std::size_t all) const override {
    return "strategy ps: every rank is a worker and a server; rank 0 serves " + std::to_string(own) + " of " +
           std::to_string(all) + " parameters";
  }

 private:
  static std::size_t size(Shard shard) { return shard.end - shard.begin; }
  static std::span<float> block(std::span<float> values, Shard shard) {
    return values.subspan(shard.begin, size(shard));
  }
  std::span<float> pushed_from(int rank) {
    return std::span(pushed_).subspan(static_cast<std::size_t>(rank) * size(own()), size(own()));
  }

  template <class Call>
  void for_each_other(Call&& call) const {
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (rank != world_.rank()) call(rank, shards_[static_cast<std::size_t>(rank)]);
    }
  }

  col::Group world_;
  std::vector<Shard> shards_;  // of each rank
  std::vector<float> pushed_;  // what each worker has pushed of own()
};

}  // namespace

std::unique_ptr<Exchange> make_ps(col::Group world, std::size_t count) {
  return std::make_unique<ParameterServer>(std::move(world), count);
}

}  // namespace digits

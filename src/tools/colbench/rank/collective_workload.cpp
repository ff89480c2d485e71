#include "colbench/rank/collective_workload.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "colbench/rank/cell_buffer.hpp"
#include "colbench/rank/values.hpp"

namespace col::colbench {
namespace {

// Elements of a block that are looked at after every operation, and after the first one.
constexpr std::size_t kSampled = 16;
constexpr std::size_t kSampledWhole = 65'536;
// Together these are more than the last cache of the machines that this is meant for.
constexpr std::size_t kRotatedBytes = std::size_t{128} << 20;
constexpr std::size_t kMostSets = 4096;

// Blocks of `count` elements in each of a rank's two buffers; 0: the buffer is not looked at.
struct Shape {
  int in = 1, out = 1;
};

Shape shape_of(Operation operation, int size, bool is_root) {
  switch (operation) {
    case Operation::broadcast:
      return {0, 1};
    case Operation::reduce:
      return {1, is_root ? 1 : 0};
    case Operation::allgather:
    case Operation::allgatherv:
      return {1, size};
    case Operation::reduce_scatter:
    case Operation::reduce_scatterv:
      return {size, 1};
    case Operation::gather:
    case Operation::gatherv:
      return {1, is_root ? size : 0};
    case Operation::scatter:
    case Operation::scatterv:
      return {is_root ? size : 0, 1};
    case Operation::alltoall:
    case Operation::alltoallv:
      return {size, size};
    case Operation::barrier:
      return {0, 0};
    default:
      return {1, 1};
  }
}

class CollectiveWorkload : public Workload {
 public:
  explicit CollectiveWorkload(const WorkloadSetup& setup)
      : group_(setup.group),
        spec_(setup.spec),
        size_(group_.size()),
        rank_(group_.rank()),
        count_(block_count(spec_, size_)),
        element_(size_of(spec_.dtype)),
        checked_(setup.check_mode != "off" && spec_.operation != Operation::barrier),
        all_(setup.check_mode == "all"),
        values_{.seed = setup.seed, .dtype = spec_.dtype, .op = spec_.op} {
    options_.op = spec_.op;
    options_.timeout = setup.timeout;
    options_.algorithm = spec_.algorithm == "auto" ? std::string_view() : std::string_view(spec_.algorithm);
    counts_.assign(static_cast<std::size_t>(size_), count_);
    window_ = spec_.cadence == Cadence::stream ? stream_window(spec_.bytes) : 1;
    // Buffers are as large as any root needs.
    const Shape shape = shape_of(spec_.operation, size_, true);
    const std::size_t in = static_cast<std::size_t>(shape.in) * count_ * element_;
    const std::size_t out = static_cast<std::size_t>(shape.out) * count_ * element_;
    const std::size_t sets = spec_.cache == CacheState::rotate ? rotated_sets(spec_, size_) : 1;
    for (std::size_t i = 0; i < sets; ++i)
      sets_.push_back({buffer(spec_.in_place ? std::max(in, out) : in), buffer(spec_.in_place ? 0 : out)});
    for (Set& set : sets_) fill_whole(set, 0);
  }

  void prepare(std::uint64_t iteration) override {
    set_ = &sets_[iteration % sets_.size()];
    root_ = spec_.root == kRotatingRoot ? static_cast<int>(iteration % static_cast<std::uint64_t>(size_)) : spec_.root;
    options_.root = root_;
    sampled_.clear();
    // A stream in place works on what it has made; nobody can say what comes of that.
    if (checked_ && (window_ == 1 || !spec_.in_place)) renew(iteration);
    if (spec_.cache == CacheState::cold) {
      set_->first.flush();
      set_->second.flush();
    }
  }

  void run() override {
    for (int i = 0; i < window_; ++i) call();
  }

  Check check(std::uint64_t iteration, bool whole) override {
    Check check;
    check.mode = !checked_ ? "off" : all_ ? "all" : "sample";
    if (!checked_ || sampled_.empty()) return check;
    pull_result(all_ || whole);
    if (all_ || whole) {
      // What was written for this iteration's sample has another epoch than the rest.
      const std::size_t step = all_ ? 1 : std::max<std::size_t>(1, count_ / kSampledWhole);
      for (std::size_t index = 0; index < count_; index += step) look_at(index, iteration, check);
    }
    for (const std::size_t index : sampled_) look_at(index, iteration, check);
    return check;
  }

  double operations() const override { return window_; }

 private:
  struct Set {
    CellBuffer first, second;  // input and output; in place, the first is both
  };

  CellBuffer buffer(std::size_t bytes) const { return {bytes, device_of(spec_.device, true)}; }

  int in_blocks() const { return shape_of(spec_.operation, size_, rank_ == root_).in; }
  int out_blocks() const {
    if (spec_.operation == Operation::exscan && rank_ == 0) return 0;
    return shape_of(spec_.operation, size_, rank_ == root_).out;
  }
  std::size_t offset(int block) const { return static_cast<std::size_t>(block) * count_ * element_; }
  bool is_broadcast() const { return spec_.operation == Operation::broadcast; }

  // In place, the shorter buffer is this rank's block of the longer one.
  std::size_t in_offset() const {
    const Shape shape = shape_of(spec_.operation, size_, true);
    return spec_.in_place && shape.in < shape.out ? offset(rank_) : 0;
  }
  std::size_t out_offset() const {
    const Shape shape = shape_of(spec_.operation, size_, true);
    return spec_.in_place && shape.out < shape.in ? offset(rank_) : 0;
  }
  const CellBuffer& in_buffer() const { return set_->first; }
  const CellBuffer& out_buffer() const { return spec_.in_place ? set_->first : set_->second; }
  std::byte* in() const { return in_buffer().image() + in_offset(); }
  std::byte* out() const { return out_buffer().image() + out_offset(); }

  // The value at `index` of `block` as rank `rank` holds it before the operation, in the epoch of that index.
  std::int64_t value(int rank, int block, std::size_t index) const {
    const bool is_new = all_ || std::binary_search(sampled_.begin(), sampled_.end(), index);
    return values_.at(rank, block, index, is_new ? epoch_ : 0);
  }

  void fill_whole(Set& set, std::uint64_t epoch) {
    set_ = &set;
    const int blocks = spec_.in_place || !is_broadcast() ? shape_of(spec_.operation, size_, true).in : 0;
    for (int block = 0; block < blocks; ++block) {
      std::byte* to = in() + offset(block);
      for (std::size_t i = 0; i < count_; ++i)
        store_element(to + i * element_, spec_.dtype, values_.at(rank_, block, i, epoch));
    }
    if (is_broadcast()) {
      for (std::size_t i = 0; i < count_; ++i)
        store_element(out() + i * element_, spec_.dtype, values_.at(rank_, 0, i, epoch));
      out_buffer().push_all();
    }
    if (blocks > 0) in_buffer().push_all();
  }

  // Only a sample of the elements gets new values where the rest can stay.
  void renew(std::uint64_t iteration) {
    epoch_ = iteration;
    if (spec_.in_place || all_ || fresh_) fill_whole(*set_, all_ ? iteration : 0);
    if (all_ && !spec_.in_place && !is_broadcast()) {
      std::memset(set_->second.image(), 0x7b, set_->second.size());
      set_->second.push_all();
    }
    fresh_ = false;
    choose_sample(iteration);
    for (const std::size_t index : sampled_) write_sample(index);
  }

  // The same on all ranks.
  void choose_sample(std::uint64_t iteration) {
    sampled_ = {0, count_ - 1};
    std::uint64_t state = values_.seed ^ (iteration * 0x9e3779b97f4a7c15U);
    for (std::size_t i = 2; i < std::min(kSampled, count_); ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      sampled_.push_back((state >> 33) % count_);
    }
    std::sort(sampled_.begin(), sampled_.end());
    sampled_.erase(std::unique(sampled_.begin(), sampled_.end()), sampled_.end());
  }

  // New values go in, and what an earlier operation has left in the output goes away.
  void write_sample(std::size_t index) {
    if (!spec_.in_place) {
      for (int block = 0; block < out_blocks(); ++block) {
        const std::size_t at = offset(block) + index * element_;
        std::memset(out() + at, 0x7b, element_);
        if (!is_broadcast() || rank_ != root_) out_buffer().push(out_offset() + at, element_);
      }
    }
    if (is_broadcast()) {
      if (rank_ != root_) return;
      store_element(out() + index * element_, spec_.dtype, value(rank_, 0, index));
      return out_buffer().push(out_offset() + index * element_, element_);
    }
    for (int block = 0; block < in_blocks(); ++block) {
      const std::size_t at = offset(block) + index * element_;
      store_element(in() + at, spec_.dtype, value(rank_, block, index));
      in_buffer().push(in_offset() + at, element_);
    }
  }

  // What check() looks at, from where the operation has left it.
  void pull_result(bool whole) const {
    if (whole) return out_buffer().pull_all();
    for (int block = 0; block < out_blocks(); ++block) {
      for (const std::size_t index : sampled_)
        out_buffer().pull(out_offset() + offset(block) + index * element_, element_);
    }
  }

  // What block `block` of this rank's output must hold.
  double expected(int block, std::size_t index) const {
    const auto one = [](std::int64_t v) { return static_cast<double>(v); };
    switch (spec_.operation) {
      case Operation::broadcast:
        return one(value(root_, 0, index));
      case Operation::allgather:
      case Operation::allgatherv:
      case Operation::gather:
      case Operation::gatherv:
        return one(value(block, 0, index));
      case Operation::scatter:
      case Operation::scatterv:
        return one(value(root_, rank_, index));
      case Operation::alltoall:
      case Operation::alltoallv:
        return one(value(block, rank_, index));
      default:
        break;
    }
    const bool scattered =
        spec_.operation == Operation::reduce_scatter || spec_.operation == Operation::reduce_scatterv;
    const int end = spec_.operation == Operation::scan     ? rank_ + 1
                    : spec_.operation == Operation::exscan ? rank_
                                                           : size_;
    Fold fold(spec_.op, spec_.dtype);
    for (int rank = 0; rank < end; ++rank) fold.add(value(rank, scattered ? rank_ : 0, index));
    return fold.result(size_);
  }

  void look_at(std::size_t index, std::uint64_t iteration, Check& check) const {
    for (int block = 0; block < out_blocks(); ++block) {
      const std::byte* at = out() + offset(block) + index * element_;
      const double wanted = expected(block, index);
      ++check.elements;
      if (is_element(at, spec_.dtype, wanted)) continue;
      if (check.wrong++ == 0)
        check.first = fmt::format("rank {}, element {} of operation {}: {}, not {}", rank_,
                                  static_cast<std::size_t>(block) * count_ + index, iteration,
                                  load_element(at, spec_.dtype), wanted);
    }
  }

  ConstTensorView in_view(int blocks) const {
    return in_buffer().view(in_offset(), static_cast<std::size_t>(blocks) * count_, spec_.dtype);
  }
  TensorView out_view(int blocks) const {
    return out_buffer().view(out_offset(), static_cast<std::size_t>(blocks) * count_, spec_.dtype);
  }

  void call();

  Group group_;
  const CellSpec spec_;
  const int size_, rank_;
  const std::size_t count_, element_;
  const bool checked_, all_;
  const Values values_;
  Options options_;
  std::vector<std::size_t> counts_;
  int window_ = 1;
  std::vector<Set> sets_;
  Set* set_ = nullptr;
  int root_ = 0;
  std::uint64_t epoch_ = 0;
  bool fresh_ = true;
  std::vector<std::size_t> sampled_;  // ascending
};

void CollectiveWorkload::call() {
  const ConstTensorView in = in_view(in_blocks());
  const TensorView out = out_view(shape_of(spec_.operation, size_, rank_ == root_).out);
  switch (spec_.operation) {
    case Operation::allreduce:
      return group_.allreduce(in, out, options_);
    case Operation::reduce:
      return group_.reduce(in, out, options_);
    case Operation::broadcast:
      return group_.broadcast(out, options_);
    case Operation::allgather:
      return group_.allgather(in, out, options_);
    case Operation::allgatherv:
      return group_.allgatherv(in, out, counts_, options_);
    case Operation::reduce_scatter:
      return group_.reduce_scatter(in, out, options_);
    case Operation::reduce_scatterv:
      return group_.reduce_scatterv(in, out, counts_, options_);
    case Operation::gather:
      return group_.gather(in, out, options_);
    case Operation::gatherv:
      return group_.gatherv(in, out, counts_, options_);
    case Operation::scatter:
      return group_.scatter(in, out, options_);
    case Operation::scatterv:
      return group_.scatterv(in, counts_, out, options_);
    case Operation::alltoall:
      return group_.alltoall(in, out, options_);
    case Operation::alltoallv:
      return group_.alltoallv(in, counts_, out, counts_, options_);
    case Operation::scan:
      return group_.scan(in, out, options_);
    case Operation::exscan:
      return group_.exscan(in, out, options_);
    default:
      return group_.barrier(options_);
  }
}

}  // namespace

std::size_t rotated_sets(const CellSpec& spec, int group_size) {
  const Shape shape = shape_of(spec.operation, group_size, true);
  const std::size_t both =
      static_cast<std::size_t>(shape.in + shape.out) * block_count(spec, group_size) * size_of(spec.dtype);
  return std::clamp(kRotatedBytes / std::max<std::size_t>(1, both) + 1, std::size_t{2}, kMostSets);
}

int stream_window(std::size_t bytes) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  return static_cast<int>(std::clamp<std::size_t>(kMostBytes / std::max<std::size_t>(1, bytes), 4, 64));
}

std::unique_ptr<Workload> make_collective_workload(const WorkloadSetup& setup) {
  return std::make_unique<CollectiveWorkload>(setup);
}

}  // namespace col::colbench

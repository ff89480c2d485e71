#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "colbench/workload/buffer.hpp"
#include "colbench/workload/workload.hpp"
#include "common/arithmetic.hpp"

namespace col::colbench {
namespace {

// What a result that is kept on a GPU may consist of: contributions that the host has to combine for it.
constexpr std::size_t kMostContributions = std::size_t{1} << 25;

// Whether the channel of a group of GPUs does it itself, in the stream of the call: only that can be timed there.
bool runs_in_stream(Group& group, const CellSpec& spec) {
  if (spec.device != Devices::cuda || spec.operation == Operation::barrier) return false;
  const auto collective = collective_of(spec.operation);
  if (!collective || group.device().type == Device::Type::cpu) return false;
  const std::string algorithm = algorithm_of(group, spec);
  const std::vector<std::string> known = group.algorithms(*collective);
  const bool is_plan = find_algorithm(*collective, algorithm) != nullptr;
  return !is_plan && std::find(known.begin(), known.end(), algorithm) != known.end();
}

void set_order(const CellSpec& spec, int size, Options& options) {
  options.order = spec.order;
  if (spec.order == col::Order::tree) options.contributions = static_cast<std::size_t>(size);
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
    set_order(spec_, size_, options_);
    if (spec_.order == col::Order::tree) tell_shares();
    counts_.assign(static_cast<std::size_t>(size_), count_);
    if (const auto collective = collective_of(spec_.operation))
      call_ = {.collective = *collective, .size = size_, .count = count_, .ops = {spec_.op}};
    window_ = spec_.cadence == Cadence::stream ? stream_window(spec_.bytes) : 1;
    // Buffers are as large as any root needs.
    const Shape shape = shape_of(spec_.operation, size_, true);
    const std::size_t in = static_cast<std::size_t>(shape.in) * count_ * element_;
    const std::size_t out = static_cast<std::size_t>(shape.out) * count_ * element_;
    const bool on_gpu = spec_.device == Devices::cuda;
    const std::size_t cache = on_gpu ? tools::gpus().cache_bytes(tools::current_gpu()) : 0;
    const std::size_t sets = spec_.cache == CacheState::rotate ? rotated_sets(spec_, size_, cache) : 1;
    for (std::size_t i = 0; i < sets; ++i)
      sets_.push_back({buffer(spec_.in_place ? std::max(in, out) : in), buffer(spec_.in_place ? 0 : out)});
    for (Set& set : sets_) fill_whole(set, 0);
    if (!runs_in_stream(group_, spec_)) return;
    timer_ = tools::gpus().make_timer(tools::current_gpu());
    options_.stream = timer_->stream();
  }

  void prepare(std::uint64_t iteration) override {
    set_ = &sets_[iteration % sets_.size()];
    root_ = spec_.root == kRotatingRoot ? static_cast<int>(iteration % static_cast<std::uint64_t>(size_)) : spec_.root;
    options_.root = call_.root = root_;
    output_ = output_segments(call_, rank_);
    sampled_.clear();
    // A stream in place works on its own results; nobody can say what they should be.
    if (checked_ && (window_ == 1 || !spec_.in_place)) renew(iteration);
    if (spec_.cache == CacheState::cold) {
      set_->first.flush();
      set_->second.flush();
    }
    if (spec_.cadence == Cadence::prepared) prepare_call();
  }

  void run() override {
    if (timer_) timer_->start();
    for (int i = 0; i < window_; ++i) call();
    if (!timer_) return;
    timer_->stop();
    for (Work& work : works_) work.wait();
    works_.clear();
  }

  std::optional<double> device_seconds() override {
    if (!timer_) return std::nullopt;
    return tools::seconds_of(*timer_);
  }

  Check check(std::uint64_t iteration, bool whole) override {
    Check check;
    check.mode = !checked_ ? "off" : all_ ? "all" : "sample";
    if (!checked_ || sampled_.empty()) return check;
    if (expected_.size() > 0 && is_as_expected(iteration, check)) return check;
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

  // The first call that names so many contributions, in which the ranks tell one another theirs: others are measured.
  void tell_shares() {
    Options options{.timeout = options_.timeout};
    set_order(spec_, size_, options);
    int one = 1;
    group_.run({.collective = Collective::allreduce, .in = std::span(&one, 1), .out = std::span(&one, 1)}, options);
  }

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
    const auto fill = [&](std::byte* to, int block) {
      fill_elements(to, spec_.dtype, count_, [&](std::size_t i) { return values_.at(rank_, block, i, epoch); });
    };
    for (int block = 0; block < blocks; ++block) fill(in() + offset(block), block);
    if (is_broadcast()) {
      fill(out(), 0);
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
    if (fresh_ && keeps_expected()) keep_expected();
    fresh_ = false;
    sampled_ = sampled_elements(values_.seed, iteration, count_);
    for (const std::size_t index : sampled_) write_sample(index);
    if (expected_.size() > 0) renew_expected();
  }

  // ---- Results that stay on a GPU. The expected result is there too, and follows the samples. So every operation is
  // checked completely, and nothing of it is copied.

  // It does not pay where every element is new every time, or what must come out depends on more than the samples.
  bool keeps_expected() const {
    if (spec_.device != Devices::cuda || all_ || sets_.size() > 1 || spec_.root == kRotatingRoot) return false;
    const std::size_t elements = static_cast<std::size_t>(out_blocks()) * count_;
    const std::size_t each = is_reduction(spec_.operation) ? static_cast<std::size_t>(size_) : 1;
    return elements > 0 && elements <= kMostContributions / each;
  }

  void keep_expected() {
    expected_ = buffer(static_cast<std::size_t>(out_blocks()) * count_ * element_);
    for (std::size_t index = 0; index < count_; ++index) write_expected(index);
    expected_.push_all();
    renewed_.clear();
  }

  void write_expected(std::size_t index) {
    for (int block = 0; block < out_blocks(); ++block)
      store_element(expected_.image() + offset(block) + index * element_, spec_.dtype, expected(block, index));
  }

  // In place, all inputs have been filled again, and earlier samples are gone. Otherwise they are still there.
  void renew_expected() {
    const auto renew = [this](std::size_t index) {
      write_expected(index);
      for (int block = 0; block < out_blocks(); ++block) expected_.push(offset(block) + index * element_, element_);
    };
    if (spec_.in_place) {
      for (const std::size_t index : renewed_) renew(index);
      renewed_ = sampled_;
    }
    for (const std::size_t index : sampled_) renew(index);
  }

  // Whether nothing is left to look at.
  bool is_as_expected(std::uint64_t iteration, Check& check) {
    const std::size_t elements = static_cast<std::size_t>(out_blocks()) * count_;
    const auto difference = out_buffer().compare(out_offset(), expected_, elements, element_);
    if (difference && difference->count == 0) {
      check.elements = elements;
      return true;
    }
    if (difference) {
      pull_result(true);
      for (std::size_t index = 0; index < count_; ++index) look_at(index, iteration, check);
    }
    // There are no kernels, or the type rounds, which the host allows for: samples will do.
    if (check.wrong == 0) expected_ = {};
    return difference.has_value();
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
      store_element(out() + index * element_, spec_.dtype, static_cast<double>(value(rank_, 0, index)));
      return out_buffer().push(out_offset() + index * element_, element_);
    }
    for (int block = 0; block < in_blocks(); ++block) {
      const std::size_t at = offset(block) + index * element_;
      store_element(in() + at, spec_.dtype, static_cast<double>(value(rank_, block, index)));
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
    const tools::Segment& from = output_[static_cast<std::size_t>(block)];
    const auto input = [&](int rank) { return value(rank, from.block, index); };
    if (!is_reduction(spec_.operation)) return kept(input(from.first), spec_.dtype);
    return tools::with_element(spec_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto result = tools::partial_fold<T>(call_.ops, size_, from.first, from.last, [&](int rank) {
        return tools::element_of<T>(static_cast<float>(input(rank)));
      });
      if constexpr (tools::is_complex_v<T>)
        return static_cast<double>(result.real());
      else
        return static_cast<double>(result);
    });
  }
  void look_at(std::size_t index, std::uint64_t iteration, Check& check) const {
    for (int block = 0; block < out_blocks(); ++block) {
      const std::byte* at = out() + offset(block) + index * element_;
      const double wanted = expected(block, index);
      ++check.elements;
      if (is_element(at, spec_.dtype, wanted, most_roundings())) continue;
      if (check.wrong++ == 0)
        check.first = fmt::format("rank {}, element {} of operation {}: {}, not {}", rank_,
                                  static_cast<std::size_t>(block) * count_ + index, iteration,
                                  load_element(at, spec_.dtype), wanted);
    }
  }

  // On a GPU, NCCL rounds at every hop. In 8 bits, sums of more than a few ranks show it.
  int most_roundings() const {
    if (!is_reduction(spec_.operation)) return 0;
    const bool shows = spec_.device != Devices::cpu && row_of(spec_.dtype).is_narrow() && element_ == 1;
    return shows || spec_.op == ReduceOp::avg ? size_ : 1;
  }

  ConstTensorView in_view(int blocks) const {
    return in_buffer().view(in_offset(), static_cast<std::size_t>(blocks) * count_, spec_.dtype);
  }
  TensorView out_view(int blocks) const {
    return out_buffer().view(out_offset(), static_cast<std::size_t>(blocks) * count_, spec_.dtype);
  }

  col::Call next_call() const;
  void call();
  void prepare_call();

  Group group_;
  const CellSpec spec_;
  const int size_, rank_;
  const std::size_t count_, element_;
  const bool checked_, all_;
  const Values values_;
  Options options_;
  std::vector<std::size_t> counts_;
  tools::ReferenceCall call_;           // the same, for what must come out
  std::vector<tools::Segment> output_;  // of this rank
  int window_ = 1;
  std::vector<Set> sets_;
  Set* set_ = nullptr;
  std::unique_ptr<DeviceTimer> timer_;  // null: what is timed does not run in a stream
  std::vector<Work> works_;             // between the timer's two events
  // For cadence prepared: by set of buffers and root, as far as they have come up.
  std::map<std::pair<const Set*, int>, PreparedCall> prepared_;
  PreparedCall* next_prepared_ = nullptr;  // one of them
  int root_ = 0;
  std::uint64_t epoch_ = 0;
  bool fresh_ = true;
  std::vector<std::size_t> sampled_;  // ascending
  CellBuffer expected_;               // empty: what comes out is looked at on the host
  std::vector<std::size_t> renewed_;  // in place: where it is not of epoch 0
};

col::Call CollectiveWorkload::next_call() const {
  const CollectiveRow& row = row_of(*collective_of(spec_.operation));
  const auto counts_of = [&](Extent extent) {
    return row.has_counts() && extent == Extent::blocks ? std::span<const std::size_t>(counts_)
                                                        : std::span<const std::size_t>();
  };
  return {.collective = *collective_of(spec_.operation),
          .in = in_view(in_blocks()),
          .out = out_view(shape_of(spec_.operation, size_, rank_ == root_).out),
          .in_counts = counts_of(row.in),
          .out_counts = counts_of(row.out)};
}

void CollectiveWorkload::prepare_call() {
  const auto [place, is_new] = prepared_.try_emplace({set_, root_});
  if (is_new) place->second = group_.prepare(next_call(), options_);
  next_prepared_ = &place->second;
}

// Blocking; with a timer only begun, so that its second event is right behind the work and not behind the host's look
// at its end.
void CollectiveWorkload::call() {
  if (spec_.cadence == Cadence::prepared) {
    next_prepared_->start();
    if (timer_)
      works_.push_back(next_prepared_->work());
    else
      next_prepared_->wait();
  } else if (timer_) {
    works_.push_back(group_.start(next_call(), options_));
  } else {
    group_.run(next_call(), options_);
  }
}

}  // namespace

std::string algorithm_of(Group& group, const CellSpec& spec) {
  const std::optional<Collective> collective = collective_of(spec.operation);
  if (!collective) return {};
  Options options{.op = spec.op, .root = std::max(0, spec.root)};
  set_order(spec, group.size(), options);
  if (spec.algorithm != "auto") options.algorithm = spec.algorithm;
  const std::size_t blocks = block_count(spec, group.size()) * size_of(spec.dtype);
  const bool whole = row_of(*collective).out == Extent::vector;
  const std::string why =
      group.explain(*collective, whole ? blocks : blocks * static_cast<std::size_t>(group.size()), spec.dtype, options);
  return why.substr(0, why.find(": "));
}

int stream_window(std::size_t bytes) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  return static_cast<int>(std::clamp<std::size_t>(kMostBytes / std::max<std::size_t>(1, bytes), 4, 64));
}

std::unique_ptr<Workload> make_collective_workload(const WorkloadSetup& setup) {
  return std::make_unique<CollectiveWorkload>(setup);
}

}  // namespace col::colbench

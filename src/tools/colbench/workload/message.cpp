#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "colbench/workload/buffer.hpp"
#include "colbench/workload/workload.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kSampledElements = 16;

class MessageWorkload : public Workload {
 public:
  explicit MessageWorkload(const WorkloadSetup& setup)
      : group_(setup.group),
        spec_(setup.spec),
        partner_(partner_of(spec_, group_.rank(), group_.size())),
        count_(block_count(spec_, group_.size())),
        checked_(setup.check_mode != "off"),
        all_(setup.check_mode == "all"),
        values_{.seed = setup.seed, .dtype = spec_.dtype, .op = ReduceOp::sum} {
    options_.timeout = setup.timeout;
    if (spec_.operation != Operation::pingpong) window_ = stream_window(spec_.bytes);
    if (!partner_) return;
    const std::size_t bytes = count_ * size_of(spec_.dtype);
    const Device::Type device = device_of(spec_.device, partner_->begins);
    const std::size_t cache = device == Device::Type::cuda ? tools::gpus().cache_bytes(tools::current_gpu()) : 0;
    const std::size_t sets = spec_.cache == CacheState::rotate ? rotated_sets(spec_, 2, cache) : 1;
    for (std::size_t i = 0; i < sets; ++i) sets_.push_back({CellBuffer(bytes, device), CellBuffer(bytes, device)});
    word_ = CellBuffer(1, device);
  }

  bool takes_part() const override { return partner_.has_value(); }

  // The half round trip; and of a window, one message in each direction that has any.
  double operations() const override { return spec_.operation == Operation::pingpong ? 2 : window_; }

  void prepare(std::uint64_t iteration) override {
    if (!partner_) return;
    first_ = iteration * static_cast<std::uint64_t>(window_);
    // No structured binding: before version 16, clang's lambdas cannot take one.
    const CellBuffer& sent = last_set().sent;
    const CellBuffer& received = last_set().received;
    if (checked_) {
      each_looked_at(iteration, [&](std::size_t index) {
        store_element(at(sent, index), spec_.dtype,
                      static_cast<double>(values_.at(group_.rank(), 0, index, iteration)));
        std::memset(at(received, index), 0x7b, size_of(spec_.dtype));
        if (all_) return;
        sent.push(offset(index), size_of(spec_.dtype));
        received.push(offset(index), size_of(spec_.dtype));
      });
      if (all_) {
        sent.push_all();
        received.push_all();
      }
    }
    if (spec_.cache != CacheState::cold) return;
    sent.flush();
    received.flush();
  }

  void run() override {
    if (!partner_) return;
    if (spec_.operation == Operation::oneway) return one_way();
    if (spec_.operation == Operation::bidirectional) return both_ways();
    return partner_->begins ? (send(), receive()) : (receive(), send());
  }

  Check check(std::uint64_t iteration, bool) override {
    Check check;
    check.mode = !checked_ ? "off" : all_ ? "all" : "sample";
    const bool receives = spec_.operation != Operation::oneway || (partner_ && !partner_->begins);
    if (!checked_ || !partner_ || !receives) return check;
    const CellBuffer& received = last_set().received;
    if (all_) received.pull_all();
    each_looked_at(iteration, [&](std::size_t index) {
      const double wanted = kept(values_.at(partner_->rank, 0, index, iteration), spec_.dtype);
      ++check.elements;
      if (!all_) received.pull(offset(index), size_of(spec_.dtype));
      if (is_element(at(received, index), spec_.dtype, wanted, 0)) return;
      if (check.wrong++ == 0)
        check.first = fmt::format("rank {}, element {} of message {} from rank {}: {}, not {}", group_.rank(), index,
                                  iteration, partner_->rank, load_element(at(received, index), spec_.dtype), wanted);
    });
    return check;
  }

 private:
  struct Set {
    CellBuffer sent, received;
  };

  std::size_t offset(std::size_t index) const { return index * size_of(spec_.dtype); }
  std::byte* at(const CellBuffer& buffer, std::size_t index) const { return buffer.image() + offset(index); }
  // The buffers of one message of the window. Those of the last one are checked.
  const Set& set_of(int message) const { return sets_[(first_ + static_cast<std::uint64_t>(message)) % sets_.size()]; }
  const Set& last_set() const { return set_of(window_ - 1); }
  ConstTensorView to_send(int message) const { return set_of(message).sent.view(0, count_, spec_.dtype); }
  TensorView to_receive(int message) const { return set_of(message).received.view(0, count_, spec_.dtype); }
  void send() { group_.send(to_send(0), partner_->rank, options_); }
  void receive() { group_.recv(to_receive(0), partner_->rank, options_); }

  template <class Visit>
  void each_looked_at(std::uint64_t iteration, Visit visit) const {
    const std::size_t step = all_ ? 1 : std::max<std::size_t>(1, count_ / kSampledElements);
    for (std::size_t index = all_ ? 0 : iteration % step; index < count_; index += step) visit(index);
    visit(count_ - 1);
  }

  void one_way() {
    const TensorView word = word_.view(0, 1, DType::uint8);
    std::vector<Work> works;
    for (int i = 0; i < window_; ++i)
      works.push_back(partner_->begins ? group_.isend(to_send(i), partner_->rank, options_)
                                       : group_.irecv(to_receive(i), partner_->rank, options_));
    for (Work& work : works) work.wait();
    partner_->begins ? group_.recv(word, partner_->rank, options_) : group_.send(word, partner_->rank, options_);
  }

  void both_ways() {
    std::vector<Work> works;
    for (int i = 0; i < window_; ++i) {
      works.push_back(group_.irecv(to_receive(i), partner_->rank, options_));
      works.push_back(group_.isend(to_send(i), partner_->rank, options_));
    }
    for (Work& work : works) work.wait();
  }

  Group group_;
  const CellSpec spec_;
  const std::optional<Partner> partner_;
  const std::size_t count_;
  const bool checked_, all_;
  const Values values_;
  Options options_;
  int window_ = 1;
  std::vector<Set> sets_;    // used in turn, message by message
  std::uint64_t first_ = 0;  // the number of the window's first message
  CellBuffer word_;          // that all has come, of a rank that only receives
};

}  // namespace

std::unique_ptr<Workload> make_message_workload(const WorkloadSetup& setup) {
  return std::make_unique<MessageWorkload>(setup);
}

}  // namespace col::colbench

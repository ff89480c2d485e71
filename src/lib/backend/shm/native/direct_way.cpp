#include "backend/shm/native/direct_way.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace col::shm_backend {
namespace {

constexpr Duration kTimeToLetGo = std::chrono::milliseconds(200);
constexpr Duration kTimeForReason = std::chrono::seconds(1);

}  // namespace

// The real Port of work_on_others().
template <class Work>
class DirectWay::Loan {
 public:
  // `wait`: null where this rank must not wait.
  Loan(DirectWay& own, const Work& work, WaitContext* wait)
      : own_(own), work_(work), rest_([this, wait] {
          own_.attendant_.attend();
          if (wait != nullptr) wait->check();
        }) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // seq_cst: either look() sees the end of the group, or the rank that has ended it sees this (give_up()).
  void begin_work() { works().store(1, std::memory_order_seq_cst); }
  void end_work() noexcept { works().store(0, std::memory_order_release); }  // pairs with give_up()
  void look() {
    rest_();
    if (own_.segment_.ending()) throw_end();
  }
  void work() { work_(rest_); }
  void look_after_work() {
    if (own_.segment_.ending_after_reads()) throw_end();
  }

 private:
  std::atomic<std::uint32_t>& works() const { return own_.segment_.place(own_.rank_).works; }
  // The reason is being written, unless the writer was killed.
  [[noreturn]] void throw_end() {
    for (const Deadline limit = Deadline::after(kTimeForReason); !limit.expired(); core::yield()) rest_();
    throw Error(ErrorCode::aborted, "the group has ended, and the rank that ended it was killed before it said why");
  }

  DirectWay& own_;
  const Work& work_;
  const SymmetricCollective::Rest rest_;
};

DirectWay::DirectWay(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank, Attendant& attendant,
                     std::vector<const std::byte*>& sources)
    : segment_(segment),
      heap_(heap),
      tuning_(segment.tuning()),
      rank_(rank),
      size_(segment.size()),
      attendant_(attendant),
      sources_(sources),
      cma_(group, rank, segment.token()),
      kernel_trials_(segment.size(), tuning_.before_trials),
      presences_(static_cast<std::size_t>(segment.size())) {}

bool DirectWay::begin(const Request& request) {
  may_be_symmetric_ = heap_.any() && SymmetricCollective::suits(request, size_, tuning_);
  may_use_cma_ = cma_.may_work() && CmaCollective::suits(request, size_, tuning_);
  turn_ = {};
  if (may_use_cma_ && cma_.works() && tuning_.copies != KernelCopies::on) {
    turn_ = kernel_trials_.next(*CmaCollective::call_of(request, size_));
    may_use_cma_ = turn_.meets();
  }
  if (!may_be_symmetric_ && !may_use_cma_) return false;

  Presence& own = presences_[static_cast<std::size_t>(rank_)];
  own = {};
  if (may_be_symmetric_) own.whereabouts = SymmetricCollective::whereabouts(request, heap_);
  own.addresses = CmaCollective::addresses(request, rank_);
  own.identity = cma_.identity();
  if (turn_.decides) own.times = kernel_trials_.told();
  others_may_write_ = may_be_symmetric_;
  return true;
}

DirectWay::Then DirectWay::share(const Request& request, WaitContext* wait) {
  if (may_be_symmetric_) {
    SymmetricCollective symmetric(request, heap_, tuning_, rank_, size_, presences_, sources_);
    if (symmetric.possible()) {
      turn_ = {};
      borrow([&](const auto& rest) { symmetric.run(rest); }, wait);
      return Then::confirms_writes;
    }
  }
  others_may_write_ = false;  // all know that it is not possible
  if (!may_use_cma_) return Then::slots;
  if (!cma_.works()) {
    cma_.learn(presences_);
    return Then::slots;
  }
  if (turn_.decides) turn_.by_kernel = kernel_trials_.decide(presences_);
  if (turn_.is_timed) share_began_ = share_ended_ = core::Clock::now();
  const CmaCollective by_cma(request, rank_, size_, presences_);
  if (!turn_.by_kernel || !by_cma.possible()) return Then::slots;
  bool all_read = false;
  borrow([&](const auto& rest) { all_read = by_cma.run(cma_, rest); }, wait);
  if (turn_.is_timed) share_ended_ = core::Clock::now();
  presences_[static_cast<std::size_t>(rank_)].identity.reaches_all = all_read ? 1 : 0;
  return Then::confirms_reads;
}

// Once the call has ended.
void DirectWay::end_trial() noexcept {
  const auto now = core::Clock::now();
  const auto since = [&](auto begin) {
    const auto time = std::chrono::nanoseconds(now - begin).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time, 0, WayTimes::kUnknown / 4));
  };
  if (turn_.by_kernel)
    kernel_trials_.took({.kernel = since(share_began_), .meeting = since(share_ended_)});
  else
    kernel_trials_.took({.slots = since(share_began_)});
  turn_ = {};
}

// A rank's share of a call that works on others' memory.
template <class Work>
void DirectWay::borrow(const Work& work, WaitContext* wait) {
  Loan<Work> loan(*this, work, wait);
  work_on_others(loan);
}

void DirectWay::take_back() noexcept {
  if (!std::exchange(others_may_write_, false)) return;
  if (!segment_.ending()) return heap_.detach();  // no memory for the words
  struct Lender {
    const Segment& segment;
    SymmetricHeap& heap;
    const Deadline deadline = Deadline::after(kTimeToLetGo);

    // A rank that comes late sees that the group has ended. A rank that works sees it soon, unless it has been stopped.
    bool wait_idle(int peer) const {
      while (segment.place(peer).works.load(std::memory_order_seq_cst) != 0) {  // see Loan::begin_work()
        if (deadline.expired()) return false;
        core::yield();
      }
      return true;
    }
    void detach() const { heap.detach(); }
  } lender{segment_, heap_};
  shm_backend::take_back(lender, rank_, size_);
}

}  // namespace col::shm_backend

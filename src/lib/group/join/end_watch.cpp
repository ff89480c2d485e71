#include "group/join/end_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "core/blocked_signal.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"
#include "core/clock/this_process.hpp"
#include "core/fork_guard.hpp"
#include "core/job/process.hpp"
#include "core/unique_fd.hpp"

namespace col::group {
namespace {

// The next process of one page.
class Watched {
 public:
  Watched(ControlPage& page, int own) : page_(page), own_(own), next_(own) { go_on(); }

  int descriptor() const noexcept { return process_.get(); }  // -1: none is left
  bool has_ended() const noexcept {
    pollfd end{process_.get(), POLLIN, 0};
    return process_ && ::poll(&end, 1, 0) == 1;
  }
  void tell() {
    page_.record(next_).doubt();
    page_.ring();
  }
  // To the next one that lives.
  void go_on() {
    process_.reset();
    const int ranks = page_.local_ranks();
    for (next_ = (next_ + 1) % ranks; next_ != own_; next_ = (next_ + 1) % ranks) {
      using State = RankActivity::State;
      const RankActivity rank = page_.record(next_).read();
      if (rank.state == State::absent || rank.state == State::finished || rank.pid == core::own_pid()) continue;
      core::UniqueFd found(static_cast<int>(::syscall(SYS_pidfd_open, rank.pid, 0)));
      // Looked at after its descriptor is there: until then another process may have got its number.
      if (core::ProcessId(rank.pid, rank.pid_start).alive()) {
        process_ = std::move(found);  // or none, which the kernel refuses
        return;
      }
      tell();
    }
  }

 private:
  ControlPage& page_;
  const int own_;
  int next_;
  core::UniqueFd process_;
};

// The thread, which lives as long as there is something to watch.
class EndWatch {
 public:
  using Place = std::list<Watched>::iterator;

  static std::shared_ptr<EndWatch> of_this_process() {
    OfProcess& place = OfProcess::instance();
    const std::scoped_lock lock(place.mutex);
    auto watch = place.watch.lock();
    if (!watch) place.watch = watch = std::make_shared<EndWatch>();
    return watch;
  }

  EndWatch() : changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!changed_) return;
    const core::AllSignalsBlocked blocked;  // in the thread: signals are for the program's own
    try {
      thread_ = core::Thread([this] { run(); });
    } catch (const std::system_error&) {  // too many threads: nothing is watched
    }
  }
  ~EndWatch() {
    if (is_inherited()) {  // its thread is the parent's
      new core::Thread(std::move(thread_));
      return;
    }
    is_over_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  bool is_inherited() const noexcept { return fork_guard_.is_forked_child(); }

  Place add(Watched watched) {
    const std::scoped_lock lock(mutex_);
    watched_.push_front(std::move(watched));
    wake();
    return watched_.begin();
  }
  void remove(Place place) {
    if (is_inherited()) return;
    const std::scoped_lock lock(mutex_);
    watched_.erase(place);
    wake();
  }

 private:
  // Never destroyed. A process that was forked has its own: the lock may be that of a thread which is not there.
  struct OfProcess {
    const core::ForkGuard fork_guard;
    std::mutex mutex;
    std::weak_ptr<EndWatch> watch;

    static OfProcess& instance() {
      static std::atomic<OfProcess*> current{nullptr};
      // acquire pairs with the release below: a thread that sees the object sees it complete.
      OfProcess* known = current.load(std::memory_order_acquire);
      while (known == nullptr || known->fork_guard.is_forked_child()) {
        auto own = std::make_unique<OfProcess>();
        if (current.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
      }
      return *known;
    }
  };

  void wake() noexcept { ::eventfd_write(changed_.get(), 1); }

  void run() {
    while (!is_over_) {
      std::vector<pollfd> looked_at{{changed_.get(), POLLIN, 0}};
      {
        const std::scoped_lock lock(mutex_);
        for (const Watched& one : watched_) looked_at.push_back({one.descriptor(), POLLIN, 0});
      }
      core::poll_for(looked_at, Deadline::kMaxBudget);
      eventfd_t times = 0;
      ::eventfd_read(changed_.get(), &times);
      const std::scoped_lock lock(mutex_);
      for (Watched& one : watched_) {
        if (!one.has_ended()) continue;
        one.tell();
        one.go_on();
      }
    }
  }

  const core::ForkGuard fork_guard_;
  const core::UniqueFd changed_;
  std::mutex mutex_;  // nothing waits while it is held
  std::list<Watched> watched_;
  std::atomic<bool> is_over_{false};
  core::Thread thread_;
};

}  // namespace

std::shared_ptr<void> watch_ends(ControlPage& page, int own) {
  if (core::scheduler() != nullptr) return nullptr;  // ranks of a simulated job have no processes
  struct Handle {
    explicit Handle(Watched watched) : watch(EndWatch::of_this_process()), place(watch->add(std::move(watched))) {}
    ~Handle() { watch->remove(place); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    const std::shared_ptr<EndWatch> watch;
    const EndWatch::Place place;
  };
  Watched watched(page, own);
  if (watched.descriptor() < 0) return nullptr;
  return std::make_shared<Handle>(std::move(watched));
}

}  // namespace col::group

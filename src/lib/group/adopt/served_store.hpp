// The store of a job on several hosts without a store from the user: a rank serves it in its own process, mostly rank
// 0. Below, "rank 0" is that one.
//
// The server must live as long as the other ranks need it, and rank 0 cannot know by itself how long that is. So the
// ranks count in the store:
//
//   present     ranks that are in it: a rank that comes adds 1, a rank that leaves subtracts 1
//   left        how often ranks other than 0 have left
//   gone/<n>    set when `left` is n times the number of these ranks
//   open        set when the server is ready
//
// When rank 0 leaves for the n-th time, it waits for gone/<n>, for a limited time. If `present` is then 0, it sets it
// to a number so low that every rank that adds 1 notices, and stops the server. A rank that meets that number comes
// back to the next server. If other ranks are still there, or there again, the server stays until the process of rank 0
// ends.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <col/job.hpp>

#include "core/clock/lock.hpp"
#include "core/fork_guard.hpp"
#include "group/adopt/job_store.hpp"

namespace col::group::adopt {

// A mutex whose lock() has a deadline, and notices meanwhile that the job has ended.
// Of the standard mutexes with a deadline, none is understood by every version of ThreadSanitizer.
class Turn {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !taken_; });
    taken_ = true;
  }

  // `what` says in words what it waits for. Throws what wait.check() throws.
  void lock(WaitContext& wait, std::string_view what) {
    wait.describe(std::string(what));
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, wait.slice(), [this] { return !taken_; })) {
      lock.unlock();  // check() may do anything
      wait.check();
      lock.lock();
    }
    taken_ = true;
  }

  bool try_lock() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(taken_, true);
  }

  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    changed_.notify_one();
  }

 private:
  core::Mutex mutex_;  // guards taken_
  core::Condition changed_;
  bool taken_ = false;
};

struct ServedSpec {
  int rank = 0;
  int world_size = 1;
  std::string server = "rank 0";  // which rank serves, for messages
  bool serves = rank == 0;        // whether this one does
  std::string host = {};          // of the one that does
  int port = 0;
  std::string source = {};  // the variable that says so, for messages
  std::string token = {};
  Duration timeout = {};                      // for calls other than wait()
  std::shared_ptr<ControlPage> control = {};  // may be null; an abort ends the wait for rank 0
};

// Thread safe. The first call of a rank other than 0 connects, and waits for rank 0 to serve.
class ServedStore final : public AdoptedStore {
 public:
  explicit ServedStore(ServedSpec spec);
  ~ServedStore() override;  // leave(), as if the process ended
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  // On rank 0: the store is served when this returns. Does nothing on other ranks. Throws unavailable if the port is
  // not available; resource.
  void serve();
  // Tells the others. Rank 0 waits until they leave too: 10 seconds at most, 1 second if something failed, 2 seconds at
  // the end of the process.
  void leave(Leaving why) noexcept override;

 private:
  // A client, and its view of the counts.
  struct Client {
    std::shared_ptr<Store> store;
    std::shared_ptr<Store> counts;
    explicit operator bool() const noexcept { return store != nullptr; }
  };

  std::shared_ptr<Store> reach() override;
  std::shared_ptr<Store> reach(WaitContext& wait) override;
  std::shared_ptr<Store> reached() const override;
  Client present() const;
  Client connect() const;
  Client enter(WaitContext& wait);
  bool try_enter(const Client& client, WaitContext& wait);
  void require_this_process() const;
  void serve_in_turn();
  void count_out(const Client& client);
  void linger(Leaving why);
  void stop() noexcept;

  const ServedSpec spec_;
  const core::ForkGuard guard_;
  mutable std::mutex mutex_;  // guards the next four members, and is never held during a wait
  Client client_;             // empty while this rank is not in the store; shared with calls that are running
  bool comes_back_ = false;   // whether this rank has left before
  int departures_ = 0;        // how often rank 0 has left the present server
  int lingered_ = -1;         // departures_ when rank 0 last waited for the others
  Turn turn_;                 // held by the thread that enters, and by the server; taken before mutex_
  std::unique_ptr<StoreServer> server_;
};

}  // namespace col::group::adopt

// Ranks in one thread, each with a stack of its own, one of which runs at a time: until it says that others may.
//
// A run is a list of choices: which rank goes on, where several can. All lists are run, one after the other, or so many
// of them. The same list gives the same run.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace col::test {

class Fibers {
 public:
  // `seen`: of what all ranks share; it is another number when something has changed that a waiting rank may wait for.
  explicit Fibers(std::function<std::uint64_t()> seen) : seen_(std::move(seen)) {}

  // Makes a rank. Its body must not throw.
  void add(std::function<void()> body) { ranks_.push_back(std::make_unique<Rank>(std::move(body))); }

  // Runs all to their ends. `choices`: which of those that can go on does, at each turn; what is missing is added, as
  // 0. Returns how many could, for each turn.
  std::vector<int> run(std::vector<int>& choices) {
    std::vector<int> options;
    for (;;) {
      std::vector<std::size_t> can;
      bool all_ended = true;
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        const Rank& rank = *ranks_[i];
        all_ended = all_ended && rank.ended;
        if (!rank.ended && (!rank.waits || rank.seen != seen_())) can.push_back(i);
      }
      if (can.empty()) {
        stuck_ = !all_ended;
        return options;
      }
      const std::size_t turn = options.size();
      if (turn == choices.size()) choices.push_back(0);
      options.push_back(static_cast<int>(can.size()));
      running_ = can[static_cast<std::size_t>(choices[turn]) % can.size()];
      Rank& rank = *ranks_[running_];
      rank.waits = false;
      if (!rank.begun) begin(rank);
      ::swapcontext(&back_, &rank.context);
    }
  }
  bool stuck() const { return stuck_; }  // whether some wait for ever

  // For the body of a rank: others may go on now.
  void pass() { leave(*ranks_[running_]); }
  // The same, and this rank has nothing to do before something has changed.
  void wait() {
    Rank& rank = *ranks_[running_];
    rank.waits = true;
    rank.seen = seen_();
    leave(rank);
  }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;
  struct Rank {
    explicit Rank(std::function<void()> what) : body(std::move(what)) {}
    std::function<void()> body;
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
    bool begun = false, ended = false, waits = false;
    std::uint64_t seen = 0;
  };

  void begin(Rank& rank) {
    rank.begun = true;
    rank.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    ::getcontext(&rank.context);
    rank.context.uc_stack.ss_sp = rank.stack.get();
    rank.context.uc_stack.ss_size = kStackBytes;
    rank.context.uc_link = &back_;
    starting_ = this;
    ::makecontext(&rank.context, &start, 0);
  }
  static void start() {
    Rank& rank = *starting_->ranks_[starting_->running_];
    rank.body();
    rank.ended = true;  // and goes on at uc_link
  }
  void leave(Rank& rank) { ::swapcontext(&rank.context, &back_); }

  static inline Fibers* starting_ = nullptr;
  const std::function<std::uint64_t()> seen_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  ucontext_t back_{};
  std::size_t running_ = 0;
  bool stuck_ = false;
};

// Calls run(choices) for all lists of choices. It returns what Fibers::run() does, or nothing to stop.
template <class Run>
void run_all(Run run) {
  for (std::vector<int> choices;;) {
    const std::vector<int> options = run(choices);
    choices.resize(options.size());
    while (!choices.empty() && choices.back() + 1 >= options[choices.size() - 1]) choices.pop_back();
    if (choices.empty()) return;
    ++choices.back();
  }
}

}  // namespace col::test

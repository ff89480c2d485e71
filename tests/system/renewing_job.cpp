// A job whose ranks go on in epochs: steps of an allreduce whose sum is checked, with a state that newcomers get.
//
//   renewing_job STEPS [WHAT:EPOCH:STEP:RANK]…
//
// WHAT is done by that rank of that epoch before that step: kill and exit end it (by SIGKILL, with code 3), stop stops
// it, and the others then go on without it, and leave is the same as all have planned it. A step counts as done when
// all have done it. RENEW_WAIT: for so many seconds the others wait for those that take a place. SPARES_FIRST: no step
// before one of them waits. NO_RENEW: a loss is an error.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <col/col.hpp>

namespace {

struct Fault {
  std::string what;
  std::uint64_t epoch = 0, step = 0;
  int rank = 0;

  explicit Fault(const std::string& text) : what(text.substr(0, text.find(':'))) {
    unsigned long long at_epoch = 0, at_step = 0;
    if (std::sscanf(text.c_str() + what.size(), ":%llu:%llu:%d", &at_epoch, &at_step, &rank) != 3)
      throw std::invalid_argument(text);
    epoch = at_epoch;
    step = at_step;
  }
};

void suffer(const Fault& fault) {
  std::fflush(stdout);
  if (fault.what == "kill") ::kill(::getpid(), SIGKILL);
  if (fault.what == "exit") ::_exit(3);
  ::raise(SIGSTOP);
}

class Job {
 public:
  Job(std::uint64_t steps, std::vector<Fault> faults) : steps_(steps), faults_(std::move(faults)) {
    if (const char* const seconds = std::getenv("RENEW_WAIT")) wait_ = std::chrono::seconds(std::atoi(seconds));
  }

  void run() {
    world_ = col::init();
    for (bool has_ended = false; !has_ended;) {
      try {
        go_on();
        has_ended = true;
      } catch (const col::Error& error) {
        if (error.code() != col::ErrorCode::peer_lost && error.code() != col::ErrorCode::aborted) throw;
        if (std::getenv("NO_RENEW") != nullptr) throw;
        renew();
      }
    }
    if (!world_) {
      std::printf("left after %d steps\n", static_cast<int>(done_));
      return col::finalize();
    }
    std::printf("rank %d of %d, epoch %d, %d steps\n", world_.rank(), world_.size(), static_cast<int>(world_.epoch()),
                static_cast<int>(done_));
    col::finalize();
  }

 private:
  void renew(std::span<const int> excluded = {}) {
    const col::Duration wait = excluded.empty() ? wait_ : col::Duration();
    world_ = world_.renew({.wait = wait, .excluded = excluded, .progress = done_});
    is_shared_ = false;
  }

  void go_on() {
    while (std::getenv("SPARES_FIRST") != nullptr && world_.epoch() == 0 && !world_.renewal_wanted()) continue;
    while (world_ && (done_ < steps_ || !is_shared_)) {
      if (!is_shared_) world_.broadcast(std::span(&done_, 1), {.root = world_.source()});
      is_shared_ = true;
      if (done_ < steps_) step();
    }
    if (world_) world_.barrier();  // who has ended cannot help those that lose a rank now
  }

  void step() {
    for (const Fault& fault : faults_) {
      if (fault.epoch != world_.epoch() || fault.step != done_) continue;
      if (fault.what == "leave" || (fault.what == "stop" && fault.rank != world_.rank()))
        return renew(std::array{fault.rank});
      if (fault.rank == world_.rank()) suffer(fault);
    }
    std::array<double, 1000> sum;
    sum.fill(static_cast<double>(done_ + 1));
    world_.allreduce(sum);
    for (const double one : sum) {
      if (one != static_cast<double>(done_ + 1) * world_.size()) throw std::runtime_error("a wrong sum");
    }
    ++done_;
  }

  const std::uint64_t steps_;
  const std::vector<Fault> faults_;
  col::Duration wait_ = {};
  col::Group world_;
  std::uint64_t done_ = 0;
  bool is_shared_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::vector<Fault> faults;
    for (int i = 2; i < argc; ++i) faults.emplace_back(argv[i]);
    Job(std::strtoull(argc > 1 ? argv[1] : "10", nullptr, 10), std::move(faults)).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "renewing_job: %s\n", error.what());
    return 1;
  }
}

// One rank of a drill.
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/hangs.hpp"
#include "colcheck/faults/job.hpp"
#include "colcheck/faults/rows.hpp"
#include "common/gpu.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

// The socket to the process that started this rank.
constexpr int kTalkFd = STDIN_FILENO;
// Longer than any job may last: the process that started this rank ends it earlier.
constexpr std::chrono::minutes kLongestHold{2};

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::send(kTalkFd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) std::_Exit(2);
}

// Says that this rank has come to `point`, and waits to be told to go on.
void ask(const std::string& point) {
  say("at " + point);
  pollfd answer{kTalkFd, POLLIN, 0};
  char byte = 0;
  int ready = 0;
  while ((ready = core::poll_for({&answer, 1}, kLongestHold)) < 0 && errno == EINTR) {  // it was stopped meanwhile
  }
  if (ready != 1 || ::read(kTalkFd, &byte, 1) != 1) std::_Exit(2);
}

void limit(decltype(RLIMIT_NOFILE) resource, rlim_t most) {
  rlimit both{};
  ::getrlimit(resource, &both);
  both.rlim_cur = most;
  if (::setrlimit(resource, &both) != 0) throw std::runtime_error("cannot set a limit");
}

class FaultRank {
 public:
  FaultRank(const Case& c, int rank)
      : case_(c), way_(drill_of(c).way_of(c)), odd_(drill_of(c).odd(c)), is_odd_(rank == odd_), rank_(rank) {}

  Report run() {
    try {
      apply_limits();
      join();
      if (group_) calls();
      if (report_.good()) end_with({}, {}, -1);
    } catch (const Error& error) {
      end_with(to_string(error.code()), error.message(), error.rank());
      report_.later = code_of_next_call();
      if (way_.regroups && error.code() == ErrorCode::peer_lost && error.rank() >= 0) regroup(error.rank());
    } catch (const Skipped& skipped) {
      end_with(kNotHere, skipped.what(), -1);
    } catch (const std::exception& error) {
      end_with("exception", error.what(), -1);
    }
    return report_;
  }

  void leave() {
    // Calls in flight are not waited for.
    if (way_.act == Act::tangles) ask("done");
    if (way_.act == Act::tangles || way_.act == Act::runs_program) std::_Exit(1);
    more_.clear();
    group_ = {};
    if (context_ != nullptr) context_->finalize();
  }

 private:
  void limit_descriptors() const {
    if (!way_.descriptors || !is_odd_) return;
    const int lowest_free = ::dup(kTalkFd);
    ::close(lowest_free);
    const rlim_t more = *way_.descriptors < 0 ? case_.variant : static_cast<rlim_t>(*way_.descriptors);
    limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest_free) + more);
  }

  void apply_limits() const {
    if (way_.shm_bytes > 0 && filter_calls(SYS_memfd_create, SECCOMP_RET_ERRNO | ENOSYS) != 0)
      throw Skipped("this system lets no system call be filtered");
    if (!way_.descriptors_late) limit_descriptors();
    if (way_.file_bytes >= 0) limit(RLIMIT_FSIZE, static_cast<rlim_t>(way_.file_bytes));
  }

  void begin(std::string what) {
    report_.doing = std::move(what);
    began_ns_ = core::clock_ns();
  }

  void end_with(std::string_view code, std::string message, int error_rank) {
    report_.at_ns = core::clock_ns();
    report_.seconds = static_cast<double>(report_.at_ns - began_ns_) * 1e-9;
    report_.code = code;
    report_.message = std::move(message);
    report_.error_rank = error_rank;
  }

  void join() {
    if (is_odd_ && way_.act == Act::never_joins) return ask("away");
    begin("start");
    context_ = &Context::current();
    if (way_.stops_at("ready")) ask("ready");
    begin("join");
    if (needs_gpu(case_.devices, case_.backend)) gpu_ = tools::use_gpu(context_->spec());
    group_ = context_->init_group({.rank = rank_, .world_size = case_.ranks, .backend_name = case_.backend});
  }

  void check(const std::string& problem) {
    if (!problem.empty()) end_with("wrong_data", problem, -1);
  }

  void call(const Case& c, int number) {
    begin(fmt::format("call {}", number));
    check(run_case(group_, numbered(c, number)));
  }

  void calls() {
    // A receive from any rank may take the message of the next call.
    const int first = case_.primitive == Primitive::recv_any ? way_.calls : 1;
    for (int number = first; number < way_.calls && report_.good(); ++number) call(case_, number);
    if (!report_.good()) return;
    if (way_.stops_at("call")) ask("call");
    if (way_.descriptors_late) {
      group_.barrier();  // all connections that it needs are there
      limit_descriptors();
    }
    last_call();
    if (!report_.good() || !group_) return;
    // Two: a rank that was stopped may find that the others have come to the first one, where they gave it up.
    for (const char* const barrier : {"barrier", "another barrier"}) {
      begin(barrier);
      group_.barrier();
    }
  }

  void last_call() {
    Case c = case_;
    switch (way_.act) {
      case Act::walks_out:
        if (is_odd_) std::_Exit(0);
        break;
      case Act::leaves:
        if (!is_odd_) break;
        context_->finalize();
        std::_Exit(0);
      case Act::stays_away:
        if (!is_odd_) break;
        ask("away");
        group_ = {};  // what the others do is over
        return;
      case Act::calls_other:
        if (is_odd_) drill_of(c).change(c);
        break;
      case Act::copies_late:
        begin(fmt::format("call {}", way_.calls));
        return check(call_held(group_, c, is_odd_, ask));
      case Act::dups:
        for (int i = 1; i <= way_.dups; ++i) {
          begin(fmt::format("dup {}", i));
          more_.push_back(group_.dup());
        }
        return;
      case Act::tangles:
        return tangle();
      case Act::runs_program:
        return play_program();
      case Act::hangs:
        return hang();
      case Act::calls:
      case Act::never_joins:
        break;
    }
    if (way_.in_flight) return call_in_flight(c, way_.calls);
    call(c, way_.calls);
  }

  // First waits in another call, which all ranks make in the same way.
  void call_in_flight(Case c, int number) {
    begin(fmt::format("call {} and one more", number));
    c.asynchronous = true;
    Call call(group_, numbered(c, number));
    call.start();
    std::vector<float> other(24);
    group_.allreduce(other, {.algorithm = "ring"});
    call.wait();
    check(call.problem());
  }

  void tangle() {
    begin("tangle");
    try {
      run_tangle(group_, case_, [] { ask("away"); });
    } catch (const Error& error) {
      end_with(to_string(error.code()), error.message(), error.world_rank());
    }
    group_ = {};
  }

  // Waits for what is in flight at times, in an order, of this rank's own.
  void play_program() {
    std::mt19937_64 own(mix(case_.seed, 5, static_cast<std::uint64_t>(rank_)));
    const auto wait_for_one = [&] {
      begin("wait");
      const auto one = open_.begin() + static_cast<std::ptrdiff_t>(own() % open_.size());
      (*one)->wait();
      check((*one)->problem());
      open_.erase(one);
    };
    for (const Case& step : program_of(case_, is_odd_)) {
      begin(describe(step));
      open_.push_back(std::make_unique<Call>(group_, step));
      open_.back()->start();
      while (!open_.empty() && own() % 3 == 0) wait_for_one();
    }
    while (!open_.empty()) wait_for_one();
    if (!report_.good()) return;
    begin("leaving");
    group_ = {};
    context_->finalize();
  }

  void hang() {
    do_part(hangs()[case_.variant - way_.variant], group_, device_of(case_, rank_, Side::input));
    ask("away");
  }

  // After an error in a call: what the group says to the next one.
  std::string code_of_next_call() {
    if (!group_ || way_.later.empty()) return {};
    try {
      group_.barrier();
      return "success";
    } catch (const Error& error) {
      return std::string(to_string(error.code()));
    }
  }

  // The ranks behind the lost one move up.
  void regroup(int lost) {
    try {
      Case c = case_;
      --c.ranks;
      if (c.root > lost || c.root == c.ranks) --c.root;
      Group others = context_->init_group({.name = "survivors",
                                           .rank = rank_ > lost ? rank_ - 1 : rank_,
                                           .world_size = c.ranks,
                                           .backend_name = c.backend});
      report_.regrouped = run_case(others, c);
      others.barrier();
      if (report_.regrouped.empty()) report_.regrouped = "success";
    } catch (const std::exception& error) {
      report_.regrouped = error.what();
    }
  }

  const Case case_;
  const Way& way_;
  const int odd_;
  const bool is_odd_;
  const int rank_;
  Context* context_ = nullptr;
  std::shared_ptr<void> gpu_ = {};  // current while this rank lives
  Group group_;
  std::vector<Group> more_ = {};
  std::vector<std::unique_ptr<Call>> open_ = {};  // until the process ends: what is in flight has this memory
  Report report_ = {};
  std::uint64_t began_ns_ = 0;
};

}  // namespace

int fault_rank_main(std::string_view token) {
  try {
    const char* const number = std::getenv("COL_RANK");
    if (number == nullptr) throw std::invalid_argument("--fault-rank is for colcheck --faults, which sets COL_RANK");
    FaultRank rank(parse_token(token), std::atoi(number));
    const Report report = rank.run();
    say(encode(report));
    rank.leave();
    return report.good() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "colcheck: {}\n", error.what());
    return 2;
  }
}

}  // namespace col::colcheck

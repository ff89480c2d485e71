#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "colcheck/engine/call.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/processes.hpp"
#include "colcheck/faults/rank_drills.hpp"
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
  FaultRank(const Drill& drill, int rank) : drill_(drill), rank_(rank) {}

  Report run();
  void leave();

 private:
  using Oddity = Drill::Oddity;

  bool is(Oddity oddity) const { return drill_.odd == rank_ && drill_.oddity == oddity; }
  void limit_descriptors() const;
  void apply_limits() const;
  void begin(std::string what);
  void join();
  void calls();
  void last_call();
  void call(const Case& c, int number);
  void call_in_flight(Case c, int number);
  void make_more_groups();
  void send_another_tag();
  void send_first();
  void tangle();
  void end_with(std::string_view code, std::string message, int error_rank);
  std::string code_of_next_call();
  void regroup(int lost);

  const Drill& drill_;
  const int rank_;
  Context* context_ = nullptr;
  std::shared_ptr<void> gpu_ = {};  // current while this rank lives
  Group group_;
  std::vector<Group> more_ = {};
  Report report_ = {};
  std::uint64_t began_ns_ = 0;
};

void FaultRank::limit_descriptors() const {
  if (drill_.descriptors < 0 || drill_.odd != rank_) return;
  const int lowest_free = ::dup(kTalkFd);
  ::close(lowest_free);
  limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest_free + drill_.descriptors));
}

void FaultRank::apply_limits() const {
  if (drill_.shm_holder > 0) enter_private_shm(drill_.shm_holder);
  if (drill_.without_memfd) refuse_memfd();
  if (!drill_.descriptors_late) limit_descriptors();
  if (drill_.file_bytes >= 0) limit(RLIMIT_FSIZE, static_cast<rlim_t>(drill_.file_bytes));
}

void FaultRank::begin(std::string what) {
  report_.doing = std::move(what);
  began_ns_ = core::clock_ns();
}

void FaultRank::end_with(std::string_view code, std::string message, int error_rank) {
  report_.at_ns = core::clock_ns();
  report_.seconds = static_cast<double>(report_.at_ns - began_ns_) * 1e-9;
  report_.code = code;
  report_.message = std::move(message);
  report_.error_rank = error_rank;
}

void FaultRank::join() {
  if (is(Oddity::never_joins)) return ask("away");
  begin("start");
  context_ = &Context::current();
  if (drill_.asks_to_join) ask("ready");
  begin("join");
  if (needs_gpu(drill_.c.devices, drill_.c.backend)) gpu_ = tools::use_gpu(context_->spec());
  group_ = context_->init_group({.rank = rank_, .world_size = drill_.c.ranks, .backend_name = drill_.c.backend});
}

void FaultRank::call(const Case& c, int number) {
  begin(fmt::format("call {}", number));
  const std::string problem = run_case(group_, numbered(c, number));
  if (!problem.empty()) end_with("wrong_data", problem, -1);
}

void FaultRank::calls() {
  for (int number = 1; number < drill_.calls && report_.good(); ++number) call(drill_.c, number);
  if (!report_.good()) return;
  if (drill_.asks_to_call) ask("call");
  if (drill_.descriptors_late) {
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

void FaultRank::last_call() {
  if (is(Oddity::walks_out)) std::_Exit(0);
  if (is(Oddity::leaves)) {
    context_->finalize();
    std::_Exit(0);
  }
  if (is(Oddity::stays_away)) {
    ask("away");
    group_ = {};  // what the others do is over
    return;
  }
  if (drill_.oddity == Oddity::sends_another_tag) return send_another_tag();
  if (drill_.oddity == Oddity::all_send_first) return send_first();
  if (drill_.more_groups > 0) return make_more_groups();
  if (drill_.oddity == Oddity::copies_late) {
    begin(fmt::format("call {}", drill_.calls));
    const std::string problem = call_held(group_, drill_.c, is(Oddity::copies_late), ask);
    if (!problem.empty()) end_with("wrong_data", problem, -1);
    return;
  }
  const Case& c = is(Oddity::calls_other) ? *drill_.other : drill_.c;
  if (drill_.in_flight) return call_in_flight(c, drill_.calls);
  call(c, drill_.calls);
}

// First waits in another call, which all ranks make in the same way.
void FaultRank::call_in_flight(Case c, int number) {
  begin(fmt::format("call {} and one more", number));
  c.asynchronous = true;
  Call call(group_, numbered(c, number));
  call.start();
  std::vector<float> other(24);
  group_.allreduce(other, {.algorithm = "ring"});
  call.wait();
  const std::string problem = call.problem();
  if (!problem.empty()) end_with("wrong_data", problem, -1);
}

void FaultRank::make_more_groups() {
  for (int i = 1; i <= drill_.more_groups; ++i) {
    begin(fmt::format("dup {}", i));
    more_.push_back(group_.dup());
  }
}

void FaultRank::send_another_tag() {
  begin("message");
  std::vector<float> message(24);
  const int receiver = (drill_.odd + 1) % drill_.c.ranks;
  if (rank_ == drill_.odd) group_.send(message, receiver, {.tag = 6});
  if (rank_ == receiver) group_.recv(message, drill_.odd, {.tag = 5});
}

void FaultRank::send_first() {
  begin("send");
  constexpr std::size_t kUntaken = std::size_t{1} << 22;  // no channel takes so much on trust
  std::vector<float> message(kUntaken);
  group_.send(message, (rank_ + 1) % drill_.c.ranks);
  group_.recv(message, (rank_ + drill_.c.ranks - 1) % drill_.c.ranks);
}

void FaultRank::tangle() {
  begin("tangle");
  Tangle tangle(group_, drill_.c.seed, std::chrono::milliseconds(drill_.tangle_ms));
  try {
    tangle.run([] { ask("away"); });
  } catch (const Error& error) {
    end_with(to_string(error.code()), error.message(), error.world_rank());
  }
}

// After an error in a call: what the group says to the next one.
std::string FaultRank::code_of_next_call() {
  if (!group_ || report_.code == "wrong_data") return {};
  try {
    group_.barrier();
    return "success";
  } catch (const Error& error) {
    return std::string(to_string(error.code()));
  }
}

// The ranks behind the lost one move up.
void FaultRank::regroup(int lost) {
  try {
    Case c = drill_.c;
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

Report FaultRank::run() {
  try {
    apply_limits();
    join();
    if (group_ && drill_.oddity == Oddity::hangs)
      tangle();
    else if (group_)
      calls();
    if (report_.good()) end_with({}, {}, -1);
  } catch (const Error& error) {
    end_with(to_string(error.code()), error.message(), error.rank());
    report_.later = code_of_next_call();
    if (drill_.regroups && error.code() == ErrorCode::peer_lost && error.rank() >= 0) regroup(error.rank());
  } catch (const std::exception& error) {
    end_with("exception", error.what(), -1);
  }
  return report_;
}

void FaultRank::leave() {
  more_.clear();
  group_ = {};
  if (context_ != nullptr) context_->finalize();
}

}  // namespace

int fault_rank_main(std::string_view text) {
  try {
    const Drill drill = decode_drill(text);
    const char* const number = std::getenv("COL_RANK");
    if (number == nullptr) throw std::invalid_argument("--fault-rank is for colcheck --faults, which sets COL_RANK");
    FaultRank rank(drill, std::atoi(number));
    const Report report = rank.run();
    say(encode(report));
    if (drill.oddity == Drill::Oddity::hangs) {
      ask("done");
      std::_Exit(1);  // what is in flight is not waited for
    }
    rank.leave();
    return report.good() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "colcheck: {}\n", error.what());
    return 2;
  }
}

}  // namespace col::colcheck

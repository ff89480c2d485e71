// The one thing that threads must not do: use a group that another thread is inside of. The second one is refused, and
// nothing else happens.
//
// On rank 0 a first thread goes into a call that cannot end yet, since the other ranks wait, in another group, for
// rank 0's word. A second thread looks, with a call that never blocks, until it is refused: the first one is inside.
// Then it tries every kind of call. When all have been refused, it gives the word.
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// Case::variant: what the first thread is inside of.
enum Inside : std::uint64_t {
  kCollective,  // a blocking collective
  kReceive,     // recv
  kWait,        // Work::wait() for a receive
  kWaitFor,     // Work::wait_for()
  kInsideCount
};
constexpr std::size_t kCount = 257;

using Data = std::vector<std::int64_t>;

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  if (!selection.wants_algorithm("")) return;
  std::size_t number = 0;
  const auto ranks = ranks_for_sequences(selection, 2);
  if (ranks.empty()) return;
  for (const std::string& backend : selection.backends) {
    for (std::uint64_t inside = 0; inside < kInsideCount; ++inside) {
      for (std::size_t i = 0; i < (quick ? 1 : ranks.size()); ++i) {
        Case c;
        c.property = "one_group_two_threads";
        c.backend = backend;
        c.ranks = in_turn(ranks, number);
        c.variant = inside;
        c.primitive = inside == kCollective ? Primitive(Primitive::allreduce) : Primitive::send_recv;
        c.seed = mix(selection.seed, 55, ++number);
        all.push_back(std::move(c));
      }
    }
  }
}

Data input(const Case& c, int rank) {
  Data data(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    data[i] = static_cast<std::int64_t>(mix(c.seed, static_cast<std::uint64_t>(rank), i) >> 16);
  return data;
}

Data expected(const Case& c, int ranks) {
  if (c.variant != kCollective) return input(c, 1);
  Data sum(kCount, 0);
  for (int r = 0; r < ranks; ++r) {
    const Data data = input(c, r);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += data[i];
  }
  return sum;
}

// The other ranks' part in the call that rank 0's first thread is inside of.
void take_part(Group& group, const Case& c, const Data& in, Data& out) {
  if (c.variant == kCollective) return group.allreduce(in, out);
  if (group.rank() == 1) group.send(in, 0);
}

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) return true;
    throw;
  }
  return false;
}

// Rank 0's first thread: goes inside as soon as the second one lets it, which looks in now and then. `started` is what
// it waits for, if it does not start it itself.
void go_inside(Group& group, const Case& c, const Data& in, Data& out, Work& started, Duration timeout) {
  const auto call = [&] {
    if (c.variant == kReceive) return group.recv(out, 1);
    if (c.variant == kCollective) return group.allreduce(in, out);
    if (c.variant == kWait) return started.wait();
    if (!started.wait_for(timeout)) throw std::runtime_error("wait_for() came back before the call had ended");
  };
  const Deadline deadline = Deadline::after(timeout);
  while (is_refused(call)) {
    if (deadline.expired()) throw std::runtime_error("the first thread is refused, but no other one is inside");
  }
}

// Every kind of call that the second thread is not refused; empty when it is refused all of them.
std::string not_refused(Group& group, Work& other) {
  Data a(kCount, 1), b(kCount, 2);
  const Data before = b;
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"allreduce", [&] { group.allreduce(a, b); }},
      {"iallreduce", [&] { std::ignore = group.iallreduce(a, b); }},
      {"broadcast", [&] { group.broadcast(b); }},
      {"barrier", [&] { group.barrier(); }},
      {"ibarrier", [&] { std::ignore = group.ibarrier(); }},
      {"send", [&] { group.send(a, 1); }},
      {"isend", [&] { std::ignore = group.isend(a, 1); }},
      {"recv", [&] { group.recv(b, 1); }},
      {"irecv_any", [&] { std::ignore = group.irecv_any(b); }},
      {"sendrecv to oneself", [&] { group.sendrecv(a, 0, b, 0); }},
      {"batch",
       [&] {
         group.batch(std::vector<Message>{Message::send(a, 1), Message::recv(b, 1)});
       }},
      {"Work::wait", [&] { other.wait(); }},
      {"Work::test", [&] { other.test(); }},
      {"Work::wait_for", [&] { other.wait_for(std::chrono::microseconds(1)); }},
      {"dup", [&] { group.dup(); }},
      {"record_trace", [&] { group.record_trace(false); }}};
  for (const auto& [name, call] : calls) {
    if (!is_refused(call)) return fmt::format("{} is not refused while another thread is inside", name);
  }
  return b == before ? "" : "a refused call has written its output";
}

// Rank 0's second thread, which ends with the word to the other ranks.
std::string try_all(Rank& rank, Group& group, Work& other, const std::atomic<bool>& failed) {
  // The other ranks wait for the word meanwhile.
  const Deadline deadline = Deadline::after(rank.timeout() / 4);
  std::string problem;
  while (problem.empty() && !is_refused([&] { group.record_trace(false); })) {
    if (failed || deadline.expired()) problem = "the second thread is not refused, though the first one is inside";
  }
  if (problem.empty()) problem = not_refused(group, other);
  rank.group().barrier();
  return problem;
}

Finding run(Rank& rank, const Case& c) {
  if (rank.size() < 2) return Finding::skip("it takes two ranks");
  Group group = rank.make_group();
  const Data in = input(c, rank.rank());
  Data out = in, late(kCount);
  // Something else in flight, for the second thread to ask for.
  Work other = rank.rank() == 0 ? group.irecv(late, 1, {.tag = 7}) : Work();
  std::string problem;
  if (rank.rank() == 0) {
    Work started = c.variant == kWait || c.variant == kWaitFor ? group.irecv(out, 1) : Work();
    std::atomic<bool> failed = false;
    std::exception_ptr failure;
    {
      std::jthread first([&] {
        try {
          go_inside(group, c, in, out, started, rank.timeout());
        } catch (...) {
          failure = std::current_exception();
          failed = true;
        }
      });
      problem = try_all(rank, group, other, failed);
    }
    if (failure) std::rethrow_exception(failure);
  } else {
    rank.group().barrier();
    take_part(group, c, in, out);
    if (rank.rank() == 1) group.send(in, 0, {.tag = 7});
  }
  other.wait();
  const bool receives = c.variant == kCollective || rank.rank() == 0;
  if (problem.empty() && receives && out != expected(c, rank.size())) problem = "the first thread's data is wrong";
  if (problem.empty() && rank.rank() == 0 && late != input(c, 1)) problem = "what was in flight meanwhile is wrong";
  rank.drop(group);
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kOneGroupTwoThreads{
    "one_group_two_threads", "a thread that uses a group which another one is inside of is refused, and no harm done",
    Property::Kind::group, &cases, &run};

}  // namespace col::colcheck

// Several threads of a rank, each with a group of its own, or in one group.
#include <chrono>
#include <functional>
#include <future>
#include <tuple>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// ---- threads: Several threads of every rank, each with a group of its own: what they do at the same time does not
// mix.

constexpr std::uint64_t kThreadsOfRank = 3;
constexpr std::size_t kThreadLength = 12;

// Case::variant: where the threads have their groups from.
enum Origin : std::uint64_t {
  kMadeBefore,    // by the rank's first thread
  kMadeInThread,  // each makes and destroys its own, all at the same time
  kOriginCount
};

void add_threads(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (int i = 0; i < (draw.quick() ? 5 : 2 * kPrimitiveCount); ++i)
      draw.add(backend, primitive_in_turn(draw.number() * 7), draw.number() / 2 % kOriginCount);
  }
}

// What one thread does; what is wrong with its data.
std::string work(Rank& rank, Group group, const std::string& name, const Case& c, std::uint64_t thread) {
  const bool own = !group;
  if (own) group = rank.context().init_group(rank.spec_of_all(name));
  // The first thread has the primitive of the case, the others have what comes after it.
  const auto about = static_cast<Primitive>((static_cast<std::size_t>(c.primitive) + 5 * thread) % kPrimitiveCount);
  std::string problem = run_program(group, {.about = about}, mix(c.seed, 1, thread), kThreadLength);
  if (own) rank.context().destroy_group(name);
  return problem;
}

Finding run_threads(Rank& rank, const Case& c) {
  std::vector<Group> groups(kThreadsOfRank);
  if (c.variant == kMadeBefore) {
    for (Group& group : groups) group = rank.make_group();
  }
  std::vector<std::future<std::string>> threads;
  for (std::uint64_t t = 0; t < kThreadsOfRank; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      return work(rank, groups[t], fmt::format("{}/thread {}", rank.group().name(), t), c, t);
    }));
  }
  for (const auto& thread : threads) thread.wait();
  for (Group& group : groups) rank.drop(group);
  std::string problem;
  for (std::uint64_t t = 0; t < kThreadsOfRank; ++t) {
    const std::string own = threads[t].get();  // or what the thread has thrown
    if (problem.empty() && !own.empty()) problem = fmt::format("thread {}: {}", t, own);
  }
  return Finding::of(std::move(problem));
}

// ---- one_group_two_threads: The one thing that threads must not do: use a group that another thread is inside of. The
// second one is refused, and nothing else happens.
//
// On rank 0 a first thread goes into a call that cannot end yet, since the other ranks wait, in another group, for
// rank 0's word. A second thread looks, with a call that never blocks, until it is refused: the first one is inside.
// Then it tries every kind of call. When all have been refused, it gives the word.

// Case::variant: what the first thread is inside of.
enum Inside : std::uint64_t {
  kCollective,   // a blocking collective
  kReceive,      // recv
  kWait,         // Work::wait() for a receive
  kWaitInSteps,  // Work::wait_for()
  kInsideCount
};
constexpr std::size_t kThreadCount = 257;

using ThreadData = std::vector<std::int64_t>;

void add_one_group_two_threads(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (std::uint64_t inside = 0; inside < kInsideCount; ++inside) {
      for (std::size_t i = 0; i < (draw.quick() ? 1 : draw.ranks().size()); ++i)
        draw.add(backend, inside == kCollective ? Primitive(Primitive::allreduce) : Primitive::send_recv, inside);
    }
  }
}

ThreadData input(const Case& c, int rank) {
  ThreadData data(kThreadCount);
  for (std::size_t i = 0; i < kThreadCount; ++i)
    data[i] = static_cast<std::int64_t>(mix(c.seed, static_cast<std::uint64_t>(rank), i) >> 16);
  return data;
}

ThreadData expected(const Case& c, int ranks) {
  if (c.variant != kCollective) return input(c, 1);
  ThreadData sum(kThreadCount, 0);
  for (int r = 0; r < ranks; ++r) {
    const ThreadData data = input(c, r);
    for (std::size_t i = 0; i < kThreadCount; ++i) sum[i] += data[i];
  }
  return sum;
}

// The other ranks' part in the call that rank 0's first thread is inside of.
void take_part(Group& group, const Case& c, const ThreadData& in, ThreadData& out) {
  if (c.variant == kCollective) return group.allreduce(in, out);
  if (group.rank() == 1) group.send(in, 0);
}

bool is_refused_call(const std::function<void()>& call) {
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
void go_inside(Group& group, const Case& c, const ThreadData& in, ThreadData& out, Work& started, Duration timeout) {
  const auto call = [&] {
    if (c.variant == kReceive) return group.recv(out, 1);
    if (c.variant == kCollective) return group.allreduce(in, out);
    if (c.variant == kWait) return started.wait();
    if (!started.wait_for(timeout)) throw std::runtime_error("wait_for() came back before the call had ended");
  };
  const Deadline deadline = Deadline::after(timeout);
  while (is_refused_call(call)) {
    if (deadline.expired()) throw std::runtime_error("the first thread is refused, but no other one is inside");
  }
}

// Every kind of call that the second thread is not refused; empty when it is refused all of them.
std::string not_refused(Group& group, Work& other) {
  ThreadData a(kThreadCount, 1), b(kThreadCount, 2);
  const ThreadData before = b;
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
    if (!is_refused_call(call)) return fmt::format("{} is not refused while another thread is inside", name);
  }
  return b == before ? "" : "a refused call has written its output";
}

// Rank 0's second thread, which ends with the word to the other ranks.
std::string try_all(Rank& rank, Group& group, Work& other, const std::future<void>& first) {
  // The other ranks wait for the word meanwhile.
  const Deadline deadline = Deadline::after(rank.timeout() / 4);
  std::string problem;
  while (problem.empty() && !is_refused_call([&] { group.record_trace(false); })) {
    const bool is_inside = first.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    if (!is_inside || deadline.expired()) problem = "the second thread is not refused, though the first one is inside";
  }
  if (problem.empty()) problem = not_refused(group, other);
  rank.group().barrier();
  return problem;
}

Finding run_one_group_two_threads(Rank& rank, const Case& c) {
  Group group = rank.make_group();
  const ThreadData in = input(c, rank.rank());
  ThreadData out = in, late(kThreadCount);
  // Something else in flight, for the second thread to ask for.
  Work other = rank.rank() == 0 ? group.irecv(late, 1, {.tag = 7}) : Work();
  std::string problem;
  if (rank.rank() == 0) {
    Work started = c.variant == kWait || c.variant == kWaitInSteps ? group.irecv(out, 1) : Work();
    std::future<void> first =
        std::async(std::launch::async, [&] { go_inside(group, c, in, out, started, rank.timeout()); });
    problem = try_all(rank, group, other, first);
    first.get();
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

const Property kThreads =
    in_group("threads", "threads of a rank that have a group each work at the same time, and all is right",
             &add_threads, &run_threads);
const Property kOneGroupTwoThreads = in_group(
    "one_group_two_threads", "a thread that uses a group which another one is inside of is refused, and no harm done",
    &add_one_group_two_threads, &run_one_group_two_threads, OnGpus::nothing, 2);

}  // namespace col::colcheck

// Every entry point of CUDA and of NCCL that a whole program calls fails, at each of its calls in turn. Whatever fails,
// the ranks end soon, what they have got is right, and nothing is left behind. COL_SWEEP_PART=2/4: every fourth of
// these runs, from the second on; they mostly wait, so that several parts go at once (sweep.sh).
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/graphs.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kCount = 24;

Values ramp(int from) {
  Values values(kCount);
  std::iota(values.begin(), values.end(), from);
  return values;
}

Values sum_of_both() {
  Values values = ramp(100);
  const Values other = ramp(200);
  for (std::size_t i = 0; i < kCount; ++i) values[i] += other[i];
  return values;
}

// A program that uses much of what there is: streams of its own and none, scratch memory, messages, kernels, several
// GPUs, and memory of NCCL's.
void whole_program(Group& group, int gpu) {
  const nccl_backend::GpuStream stream(cuda());
  const Options in_stream{.stream = {stream.get()}};
  const Array own(gpu, ramp(100 * (gpu + 1))), out(gpu, kCount, -1), both(gpu, 2 * kCount, -1);
  group.allreduce(own, out);
  expect(out.values() == sum_of_both(), "the sum");
  const nccl_backend::GpuStream reader(cuda());
  Work work = group.iallgather(own, both, in_stream);
  work.wait(Stream{reader.get()});
  work.wait();
  group.alltoall(both, both);
  Values twice = ramp(100 * (gpu + 1));
  twice.insert(twice.end(), twice.begin(), twice.begin() + kCount);
  expect(both.values() == twice, "what was exchanged in place");
  group.sendrecv(own, 1 - gpu, out, 1 - gpu);
  expect(out.values() == ramp(100 * (2 - gpu)), "the message");
  group.allreduce(own, out, {.op = Op::premul_sum(1)});
  expect(out.values() == sum_of_both(), "the scaled sum");
#ifdef COL_TEST_HAS_KERNELS
  group.scan(own, out);
  expect(out.values() == (gpu == 0 ? ramp(100) : sum_of_both()), "the sums so far");
#endif
  const std::vector<TensorView> tensors{out};
  group.allreduce_multigpu(tensors);
  void* const memory = group.alloc(64);
  col::free(memory);
  group.barrier();
}

// In the run that goes on. The graph of another rank waits for one that has failed.
std::atomic<bool> one_has_failed{false};

void with_graph(Group& group, int gpu) {
  const nccl_backend::GpuStream stream(cuda());
  const Options in_stream{.stream = {stream.get()}};
  const Array own(gpu, ramp(100 * (gpu + 1))), out(gpu, kCount, -1);
  group.allreduce(own, out, in_stream);
  Capture capture(stream.get());
  group.allreduce(own, out, in_stream);
  capture.end();
  group.barrier();  // a graph that a rank has not would never end on the others
  try {
    capture.replay([] { return one_has_failed.load(); });
  } catch (...) {  // the other rank has failed: nothing but the end of the group ends what waits for it on the GPU
    Context::current().destroy_group("g");
    throw;
  }
  expect(out.values() == sum_of_both(), "the sum of a replay");
  group.barrier();
}

// The same, where all data goes through the host.
void through_host(Group& group, int gpu) {
  const Array own(gpu, ramp(100 * (gpu + 1))), out(gpu, kCount, -1);
  group.allreduce(own, out);
  expect(out.values() == sum_of_both(), "the sum");
  group.iallreduce(own, out).wait();
  expect(out.values() == sum_of_both(), "the sum of the call in flight");
  group.sendrecv(own, 1 - gpu, out, 1 - gpu);
  expect(out.values() == ramp(100 * (2 - gpu)), "the message");
  group.barrier();
}

// One of the two libraries.
struct Library {
  void (*fail)(const char* name, int code, int nth);
  std::size_t (*calls)(const char* name);
  const char* (*called)();
  int code;
};

// What the program calls by itself. If a rank does not launch its graph, nothing ends those of the others.
bool is_ours(std::string_view name) {
  return name.starts_with("cuGraph") || name.starts_with("cuStreamBegin") || name.starts_with("cuStreamEnd");
}

std::vector<std::string> names_of(const Library& library) {
  std::istringstream lines(library.called());
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) {
    if (!is_ours(name)) names.push_back(name);
  }
  return names;
}

struct Alive {
  static constexpr const char* kCuda[] = {"contexts", "streams", "events", "device_memory", "host_memory", "modules"};
  static constexpr const char* kNccl[] = {"communicators", "operators", "windows", "memory"};
  std::vector<std::size_t> counts;
  Alive() {
    for (const char* what : kCuda) counts.push_back(fake_gpu_alive(what));
    for (const char* what : kNccl) counts.push_back(fake_nccl_alive(what));
  }
  std::size_t& contexts() { return counts[0]; }
  std::size_t& communicators() { return counts[std::size(kCuda)]; }
  bool no_more_than(const Alive& before) const {
    return std::ranges::equal(counts, before.counts, std::ranges::less_equal{});
  }
};

// In the blocking form, a thread that makes a communicator, and waits in NCCL for a rank that has failed, is left
// behind with it and with its references to the device (docs/decisions/0035-blocking-communicators.md). Nothing else is
// left, and all of that goes when the wait ends. Fewer may be alive than before, when such a thread was about to end.
void check_left_by_waits(const Alive& before) {
  Alive left;
  soon([&] {
    const std::size_t waits = fake_nccl_alive("unconnected");
    left = Alive();
    left.communicators() -= std::min(waits, left.communicators());
    if (waits > 0) left.contexts() = 0;
    return left.no_more_than(before);
  });
  CAPTURE(left.counts, before.counts);
  CHECK(left.no_more_than(before));
  soon([&] {
    fake_nccl_end_waits();  // again: the thread may come to its wait only now
    left = Alive();
    return left.no_more_than(before);
  });
  CAPTURE(left.counts);
  CHECK(left.no_more_than(before));
}

void check_left(const Alive& before) {
  if (is_blocking()) return check_left_by_waits(before);
  const Alive left;
  CHECK(left.counts == before.counts);
}

// A call that gives something back and fails has not given it back.
bool gives_back(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"Destroy", "Free", "Release", "Unload", "Push", "Pop", "Deregister",
                                              "Finalize", "Abort", "Revoke", "GroupEnd"},
      [&](std::string_view word) { return name.find(word) != name.npos; });
}

// All of the first ones, then fewer: the calls of what polls have no end, and each run takes its time.
int after(int nth) {
  return nth < 4 ? nth + 1 : nth + nth / 2;
}

// After an error, a communicator that has graphs stays until the process ends: a graph that is destroyed reads from it.
enum class Left { nothing, communicators };

// The runs of this process.
class Part {
 public:
  Part() {
    const char* const text = std::getenv("COL_SWEEP_PART");
    if (text == nullptr) return;
    const bool is_read = std::sscanf(text, "%d/%d", &number_, &of_) == 2;
    REQUIRE((is_read && 1 <= number_ && number_ <= of_));
  }
  bool has_next() { return runs_++ % of_ == number_ - 1; }

 private:
  int number_ = 1, of_ = 1, runs_ = 0;
};

std::vector<Outcome> run(Backend backend, const GpuBody& body, Duration timeout) {
  one_has_failed = false;
  return run_threads(2, [&](int rank, Context& context) {
    try {
      const OnGpu current(rank);
      Group group =
          context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = backend, .timeout = timeout});
      body(group, rank);
    } catch (...) {
      one_has_failed = true;
      throw;
    }
  });
}

void sweep(Backend backend, const Library& library, const GpuBody& body, Left may_be_left = Left::nothing) {
  forget_faults();
  check_good(run(backend, body, 20s));
  const std::vector<std::string> names = names_of(library);
  CHECK(names.size() > 5);
  Part part;
  int runs = 0;
  double longest = 0;
  std::string longest_of;
  for (const std::string& name : names) {
    const std::size_t usual = library.calls(name.c_str());
    const int before_name = runs;
    for (int nth = 1; nth <= static_cast<int>(usual); nth = after(nth)) {
      if (!part.has_next()) continue;
      INFO(name << ", call " << nth);
      forget_faults();
      const Alive before;
      library.fail(name.c_str(), library.code, nth);
      const std::vector<Outcome> outcomes = run(backend, body, 2s);  // of a rank that does not connect nobody tells
      ++runs;
      forget_faults();
      INFO(show(outcomes));
      const bool one_is_told = std::ranges::any_of(outcomes, [](const Outcome& one) { return one.code.has_value(); });
      for (const Outcome& outcome : outcomes) {
        if (outcome.seconds > longest) longest_of = fmt::format("{}, call {}", name, nth);
        longest = std::max(longest, outcome.seconds);
        // A graph that the program starts by itself has no deadline: it waits for a rank that has failed.
        const bool waits_in_graph = may_be_left == Left::communicators && one_is_told &&
                                    outcome.text.find("a stream does not end") != std::string::npos;
        CHECK((outcome.good || outcome.code.has_value() || waits_in_graph));
        CHECK(outcome.seconds < 30);
      }
      if (may_be_left == Left::nothing && !gives_back(name)) check_left(before);
      fake_nccl_end_waits();  // or the stand-in ends the process, in some later run, for a wait that takes too long
    }
    if (runs == before_name) continue;
    forget_faults();
    check_good(run(backend, body, 20s));  // what one fault has done harms no later group
  }
  WARN(fmt::format("{} runs with a fault in {} functions; the longest, of {}, took {:.1f} s", runs, names.size(),
                   longest_of, longest));
}

const Library kCuda{fake_gpu_fail, fake_gpu_calls, fake_gpu_called, CUDA_ERROR_UNKNOWN};
const Library kNccl{fake_nccl_fail, fake_nccl_calls, fake_nccl_called, ncclInternalError};

TEST_CASE("gpu sweep: each call of NCCL fails once", "[gpu]") {
  sweep(Backend::nccl, kNccl, whole_program);
}

TEST_CASE("gpu sweep: each call of CUDA fails once", "[gpu]") {
  sweep(Backend::nccl, kCuda, whole_program);
}

TEST_CASE("gpu sweep: each call of NCCL and CUDA fails once, where there are graphs", "[gpu]") {
  sweep(Backend::nccl, kNccl, with_graph, Left::communicators);
  sweep(Backend::nccl, kCuda, with_graph, Left::communicators);
}

TEST_CASE("gpu sweep: each call of CUDA fails once, where data goes through the host", "[gpu]") {
  sweep(Backend::shm, kCuda, through_host);
}

}  // namespace
}  // namespace col::test

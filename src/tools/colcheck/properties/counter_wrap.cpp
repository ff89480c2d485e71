// Counters that pass 2^32, and the largest number of a signed type.
//
// A group counts its collectives, whose number is part of every call's fingerprint, and the bytes that have ever gone
// through each ring of shared memory. The first counter would take more than a lifetime to reach such numbers, so the
// group is told to begin shortly before (COL_FAULT=start:op=N). The second one can reach them.
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// Case::variant: the number that the counter passes. It counts collectives, unless it is the number of bytes.
constexpr std::uint64_t kSigned32 = std::uint64_t{1} << 31, kUnsigned32 = std::uint64_t{1} << 32,
                        kSigned64 = std::uint64_t{1} << 63;
constexpr std::uint64_t kWrapBytes = 1;  // 2^32 bytes from each rank to the next one
// Collectives before the number that is passed; the program is longer than that by far.
constexpr std::uint64_t kBefore = 4;
constexpr std::size_t kWrapLength = 20;
constexpr int kCollectives = static_cast<int>(Primitive::barrier) + 1;

void add_counter_wrap(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (const std::uint64_t limit : {kSigned32, kUnsigned32, kSigned64}) {
      for (int i = 0; i < (draw.quick() ? 1 : kCollectives); ++i)
        draw.add(backend, static_cast<Primitive>((draw.number() * 3) % kCollectives), limit);
    }
    // Others leave the counting of bytes to the kernel.
    if (!draw.quick() && backend == to_string(Backend::shm))
      draw.add(backend, Primitive::sendrecv, kWrapBytes, draw.ranks().front());
  }
}

// COL_FAULT has a value as long as one of these exists. If ranks are threads, one at a time makes an object that reads
// it.
class FaultVariable {
 public:
  explicit FaultVariable(const std::string& value) : lock_(mutex_) {
    if (const char* before = std::getenv(kName)) before_ = before;
    ::setenv(kName, value.c_str(), 1);
  }
  ~FaultVariable() {
    if (before_)
      ::setenv(kName, before_->c_str(), 1);
    else
      ::unsetenv(kName);
  }
  FaultVariable(const FaultVariable&) = delete;
  FaultVariable& operator=(const FaultVariable&) = delete;

 private:
  static constexpr const char* kName = "COL_FAULT";
  inline static std::mutex mutex_;
  std::lock_guard<std::mutex> lock_;
  std::optional<std::string> before_;
};

// In the same job, with a part of its store: so nothing of it can be taken for something of the other context's, and it
// can leave without taking the job's directory along.
std::unique_ptr<Context> context_that_starts_at(std::uint64_t operation, Rank& rank) {
  ContextSpec spec = rank.context().spec();
  spec.store = make_prefix_store(spec.store, "counter_wrap/" + std::string(rank.group().name()));
  spec.control.reset();  // this rank's record there is the other context's
  const FaultVariable fault(fmt::format("start:op={}", operation));
  return std::make_unique<Context>(std::move(spec));
}

// The numbers under which the group has run what it was told to; what is wrong with them.
std::string miscounted(const std::vector<TraceEntry>& trace, std::uint64_t first) {
  std::uint64_t highest = 0, lowest = std::numeric_limits<std::uint64_t>::max();
  for (const TraceEntry& entry : trace) {
    highest = std::max(highest, entry.operation);
    lowest = std::min(lowest, entry.operation);
  }
  if (lowest == first && highest > first + kBefore) return {};
  return fmt::format("the collectives are numbered from {} to {}, and should begin with {}", lowest, highest, first);
}

std::string pass_operations(Rank& rank, const Case& c) {
  const std::uint64_t first = c.variant - kBefore;
  const auto context = context_that_starts_at(first, rank);
  Group group = context->init_group(rank.spec_of_all("wrap"));
  group.record_trace(true);
  for (std::uint64_t i = 0; i < 2 * kBefore; ++i) group.barrier();
  std::string problem = miscounted(group.trace(), first);
  group.record_trace(false);
  context->destroy_group("wrap");
  group = context->init_group(rank.spec_of_all("wrap"));
  const std::string wrong = run_program(group, {.about = c.primitive}, c.seed, kWrapLength);
  if (problem.empty()) problem = wrong;
  context->destroy_group("wrap");
  context->finalize();
  return problem;
}

// Messages around the ring, with a length that divides nothing, so that the passage of 2^32 is inside a message.
std::string pass_bytes(Rank& rank, const Case& c) {
  constexpr std::size_t kCount = 100'003;
  Group group = rank.make_group();
  const int next = (rank.rank() + 1) % rank.size(), previous = (rank.rank() + rank.size() - 1) % rank.size();
  const auto content = [&](int from, std::uint64_t round, std::size_t i) {
    return mix(c.seed, static_cast<std::uint64_t>(from)) + round + i * 0x9e3779b97f4a7c15ULL;
  };
  std::vector<std::uint64_t> out(kCount), in(kCount);
  std::string problem;
  std::uint64_t bytes = 0, round = 0;
  for (; bytes < kUnsigned32 + 2 * kCount * sizeof(out[0]); bytes += kCount * sizeof(out[0]), ++round) {
    for (std::size_t i = 0; i < kCount; ++i) out[i] = content(rank.rank(), round, i);
    group.sendrecv(out, next, in, previous);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (in[i] != content(previous, round, i) && problem.empty())
        problem = fmt::format("element {} of the message after {} bytes is wrong", i, bytes);
    }
  }
  rank.drop(group);
  return problem;
}

Finding run_counter_wrap(Rank& rank, const Case& c) {
  if (c.variant == kWrapBytes) return Finding::of(pass_bytes(rank, c));
  if (c.variant <= kBefore) throw std::invalid_argument("no number of collectives to pass");
  return Finding::of(pass_operations(rank, c));
}

}  // namespace

const Property kCounterWrap =
    in_group("counter_wrap", "groups go on rightly when their counters pass 2^31, 2^32 and 2^63", &add_counter_wrap,
             &run_counter_wrap, OnGpus::nothing, 2);

}  // namespace col::colcheck

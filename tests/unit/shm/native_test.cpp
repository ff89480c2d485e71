// The collectives over shared memory give what a loop over scalars gives, in any mix and at any speed of the ranks.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/segment.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "support/catch.hpp"
#include "support/native_calls.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using shm_backend::Area;
using shm_backend::kInlineBytes;
using shm_backend::kSlots;

namespace {

using Clock = std::chrono::steady_clock;

// Works for a while, as a sleep would be no work: the processor is not free meanwhile.
void work_for(std::chrono::microseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

// All calls that the channel has, with vectors or blocks of `count`.
std::vector<NativeCall> calls_of(std::size_t count, int size, bool in_place) {
  std::vector<NativeCall> calls;
  for (const NativeEntry& entry : shm_backend::native_entries()) {
    for (const NativeCall& call : test::calls_of(entry, count, size, in_place)) calls.push_back(call);
  }
  return calls;
}

template <class T>
void check_sizes(int size, const std::vector<std::size_t>& counts) {
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    std::uint64_t number = 0;
    for (const std::size_t count : counts) {
      for (const bool in_place : {false, true}) {
        for (const NativeCall& call : calls_of(count, size, in_place))
          make_call<T>(channel, call, rank, size, number++);
      }
    }
  });
  INFO(size << " ranks, " << to_string(dtype_of<T>()) << "\n" << show(endings));
  CHECK(all_well(endings));
}

// Around what fits into the line of a flag, as a vector and as one of the blocks.
template <class T>
std::vector<std::size_t> small_counts(int size) {
  const std::size_t line = kInlineBytes / sizeof(T), block = line / static_cast<std::size_t>(size);
  return {0, 1, 2, block, block + 1, line - 1, line, line + 1, 1000};
}

// What a slot holds, in elements as wide as they lie there.
template <class T>
std::size_t slot_count(int size) {
  return Area::small_slot_bytes_for(size) / std::max(sizeof(T), sizeof(float));
}

// One message to the next rank and one from the rank before, on their way while collectives are run.
class Neighbours {
 public:
  Neighbours(ShmChannel& channel, int rank, int size, std::uint64_t number, std::size_t count)
      : channel_(channel), rank_(rank), size_(size), out_(count, rank * 1000 + static_cast<int>(count)), in_(count) {
    receive_ = channel.post_recv((rank + size - 1) % size, number << 32, in_);
    send_ = channel.post_send((rank + 1) % size, number << 32, out_);
  }
  void finish() {
    if (!channel_.test(receive_)) wait_for(channel_, receive_);
    wait_for(channel_, send_);
    const int before = (rank_ + size_ - 1) % size_;
    expect(in_ == std::vector<std::int32_t>(in_.size(), before * 1000 + static_cast<int>(in_.size())), "the message");
  }

 private:
  ShmChannel& channel_;
  const int rank_, size_;
  std::vector<std::int32_t> out_, in_;
  Ticket receive_, send_;
};

template <class T>
void check_mix(int size, int calls, std::uint64_t seed) {
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    // `common` draws the same on all ranks.
    std::mt19937_64 common(seed), own(seed + static_cast<std::uint64_t>(rank) + 1);
    const auto draw = [](std::mt19937_64& random, std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    std::optional<Neighbours> neighbours;
    for (int i = 0; i < calls; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      const std::size_t kind = draw(common, 16);
      const std::size_t count = kind == 0 ? draw(common, 100'000) : kind < 4 ? draw(common, 5'000) : draw(common, 70);
      const auto all = calls_of(count, size, draw(common, 2) == 0);
      const NativeCall call = all[draw(common, all.size())];
      const bool messages = draw(common, 3) == 0;
      const std::size_t message = draw(common, 2) == 0 ? draw(common, 200) : draw(common, 60'000);
      if (messages) neighbours.emplace(channel, rank, size, number, message);
      // Mostly in step; some wait long enough for the others to sleep.
      const std::size_t delay = draw(own, 60);
      if (delay == 0) work_for(3ms);
      if (delay < 20) work_for(std::chrono::microseconds(draw(own, 100)));
      make_call<T>(channel, call, rank, size, number);
      if (messages) neighbours->finish();
    }
  });
  INFO(size << " ranks, " << to_string(dtype_of<T>()) << ", seed " << seed << "\n" << show(endings));
  CHECK(all_well(endings));
}

}  // namespace

TEST_CASE("native: all collectives, roots and places, for all kinds of operators, around a line", "[shm]") {
  for (const int size : {1, 2, 3, 5}) {
    check_sizes<std::int32_t>(size, small_counts<std::int32_t>(size));
    check_sizes<bfloat16>(size, small_counts<bfloat16>(size));
  }
  check_sizes<std::uint32_t>(3, small_counts<std::uint32_t>(3));
  check_sizes<float>(2, small_counts<float>(2));
}

TEST_CASE("native: all collectives around the borders of slots", "[shm]") {
  const std::size_t slot = slot_count<std::int32_t>(2);
  check_sizes<std::int32_t>(2, {4097, slot - 1, slot + 1, kSlots * slot + 3});
  check_sizes<std::uint32_t>(3, {slot_count<std::uint32_t>(3) + 1});
  check_sizes<float>(2, {slot_count<float>(2)});
  check_sizes<bfloat16>(3, {slot_count<bfloat16>(3) - 1, kSlots * slot_count<bfloat16>(3) + 3});
}

TEST_CASE("native: calls that wander through their slots, in turn with others", "[shm]") {
  const auto seed = std::random_device{}();
  for (const int size : {2, 3}) {
    Area area;
    std::size_t used = 0, wide = 0;
    const shm_backend::Tuner wandering = [&](const shm_backend::Segment& segment, int processors) {
      auto tuning = decide(shape_of(segment, processors), {.copies = shm_backend::KernelCopies::off});
      tuning.crowd = 1;
      area = segment.area();
      used = tuning.slot;
      wide = tuning.wide_slot;
      return tuning;
    };
    const auto endings = run_ranks(
        size,
        [&](int rank, ShmChannel& channel) {
          std::mt19937 common(seed);
          // Twice as much as makes it worth while, and then once around.
          for (std::uint64_t number = 0; number < 400; ++number) {
            const std::size_t count = number % 8 == 0 ? common() % 200 : 4096 + common() % 30'000;
            const auto all = calls_of(count, size, common() % 2 == 0);
            make_call<std::int32_t>(channel, all[common() % all.size()], rank, size, number);
          }
          const std::byte* const begin = area.slot_data(rank, 0);
          const bool has_wandered =
              std::any_of(begin + used, begin + wide, [](std::byte b) { return b != std::byte{0}; });
          expect(has_wandered || wide == used, "what is beyond the slots that calls need is used");
        },
        wandering);
    INFO(size << " ranks, seed " << seed << "\n" << show(endings));
    CHECK(all_well(endings));
  }
}

TEST_CASE("native: where a rank says that its data is, others stay inside of its slot", "[shm]") {
  const auto memory = shm_backend::make_memfd();
  const auto segment = shm_backend::Segment::create(memory.get(), 2, 1);
  const Area area = segment->area();
  const std::size_t bytes = 4096, room = area.slot_bytes() - bytes;
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{room}, std::uint64_t{room + 1}, ~std::uint64_t{0}}) {
    area.header(1, 3).offset = offset;
    CHECK(area.data(1, 3, bytes) == area.slot_data(1, 3) + std::min<std::uint64_t>(offset, room));
    // A reader knows by itself where a part is.
    for (const std::uint64_t step : {3, 7})
      CHECK(area.data(1, step, shm_backend::kPartBytes) == area.slot_data(1, 3) + Area::part_at(step));
  }
}

TEST_CASE("native: blocks of no elements", "[shm]") {
  const std::vector<std::vector<std::size_t>> all_counts = {
      {0, 0, 0}, {7, 0, 0}, {0, 0, 7}, {0, 30'000, 0}, {1, 0, 100'000}};
  require_well(run_ranks(3, [&](int rank, ShmChannel& channel) {
    std::uint64_t number = 0;
    for (const auto& counts : all_counts) {
      for (const Collective collective : {Collective::allgatherv, Collective::reduce_scatterv, Collective::gatherv,
                                          Collective::scatterv, Collective::alltoallv}) {
        for (const bool in_place : {false, true}) {
          const NativeCall call{.collective = collective, .in_place = in_place, .counts = counts};
          make_call<std::int32_t>(channel, call, rank, 3, number++);
          make_call<bfloat16>(channel, call, rank, 3, number++);
        }
      }
    }
  }));
}

TEST_CASE("native: counts that a rank alone knows, and the others expect otherwise", "[shm]") {
  const auto endings = run_ranks(3, [&](int rank, ShmChannel& channel) {
    std::vector<std::int32_t> in(10), out(30);
    // Rank 1 sends more than the root expects of it.
    const std::vector<std::size_t> counts = {5, 5, 5};
    Request request;
    request.collective = Collective::gatherv;
    request.in = {in.data(), rank == 1 ? std::size_t{6} : std::size_t{5}, DType::int32};
    if (rank == 0) request.out = {out.data(), 15, DType::int32}, request.out_counts = counts;
    request.fingerprint = 77;
    run_native(channel, request, 20s);
  });
  INFO(show(endings));
  // Those who cannot see it learn of it, or are done before.
  CHECK(endings[0].code == ErrorCode::mismatch);
}

TEST_CASE("native: mixed calls of ranks that dawdle, with messages on their way", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  for (const int size : {2, 3, 4}) {
    check_mix<std::int32_t>(size, 250, seed);
    check_mix<bfloat16>(size, 120, seed);
  }
}

TEST_CASE("native: a rank that waits in a collective moves on the messages it has posted", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    std::vector<std::int32_t> data(500'000, rank == 0 ? 5 : 0);
    const NativeCall barrier;
    if (rank == 0) {
      send(channel, 1, 1, data);  // too large for a ring: ends when rank 1 takes it
      return make_call<std::int32_t>(channel, barrier, rank, 2, 0);
    }
    const Ticket ticket = channel.post_recv(0, 1, data);
    make_call<std::int32_t>(channel, barrier, rank, 2, 0);
    wait_for(channel, ticket);
    expect(data == std::vector<std::int32_t>(data.size(), 5), "the message");
  }));
}

TEST_CASE("native: what a root has put before it left is still taken", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    if (rank != 0) work_for(2ms);
    make_call<std::int32_t>(channel, {.collective = Collective::broadcast, .count = 1000}, rank, 3, 0);
  }));
}

// Whatever rank 0 has decided, all ranks do it, and the results are the same.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backend/factories.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "support/catch.hpp"
#include "support/native_calls.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace col::shm_backend;

namespace {

template <class T>
void check_all_calls(int size, const std::vector<std::size_t>& counts, const Tuner& tuner) {
  const auto endings = run_ranks(
      size,
      [&](int rank, ShmChannel& channel) {
        std::uint64_t number = 0;
        for (const std::size_t count : counts) {
          for (const bool in_place : {false, true}) {
            for (const NativeEntry& entry : shm_backend::native_entries()) {
              for (const NativeCall& call : test::calls_of(entry, count, size, in_place))
                make_call<T>(channel, call, rank, size, number++);
            }
          }
        }
      },
      tuner);
  INFO(show(endings));
  CHECK(all_well(endings));
}

// A tuning that no machine leads to: each threshold is somewhere, for itself.
Tuning drawn(const Segment& segment, std::mt19937_64& random) {
  const auto any = [&](std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random); };
  const auto either = [&](std::uint64_t one, std::uint64_t other) { return any(1) == 0 ? one : other; };
  Tuning tuning;
  tuning.looks = static_cast<std::uint32_t>(any(100));
  tuning.small_slot = segment.small_slot_bytes();
  tuning.slot = either(tuning.small_slot, segment.area().slot_bytes());
  tuning.least_part = std::uint64_t{1} << any(20);
  tuning.fold_all = either(0, std::uint64_t{1} << any(20));
  tuning.streamed = either(0, ~std::uint64_t{0});
  tuning.wide_slot = either(tuning.small_slot, segment.area().slot_bytes());
  tuning.two_waits = any(1 << 18);
  tuning.crowd = 1 + any(3);
  tuning.tries = static_cast<std::uint32_t>(any(1));
  tuning.copies = any(2) == 0 ? KernelCopies::on : KernelCopies::automatic;
  tuning.before_trials = either(0, std::uint64_t{1} << 20);
  for (std::uint64_t& bits : tuning.kernel) bits = either(random(), either(0, ~std::uint64_t{0}));
  return tuning;
}

}  // namespace

TEST_CASE("tuning: every outcome gives the same results, for all collectives", "[shm]") {
  const std::vector<std::size_t> counts = {1, 100, 4097, 70'001};
  for (const KernelCopies copies : {KernelCopies::off, KernelCopies::on}) {
    const Tuner forced = [copies](const Segment& segment, int processors) {
      return decide(shape_of(segment, processors), {.copies = copies});
    };
    check_all_calls<std::int32_t>(3, counts, forced);
    check_all_calls<std::int32_t>(2, counts, forced);  // two ranks can fold by the kernel
  }
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 6; ++i) {
    const Tuner any = [&](const Segment& segment, int) { return drawn(segment, random); };
    check_all_calls<std::int32_t>(2 + i % 3, counts, any);
    check_all_calls<bfloat16>(2 + i % 2, {5, 30'000}, any);
  }
}

TEST_CASE("tuning: rank 0 alone decides, once, and all ranks of a group have its values", "[shm]") {
  std::atomic<int> decided{0};
  require_well(run_ranks(
      4,
      [](int rank, ShmChannel& channel) {
        Request request;
        request.collective = Collective::broadcast;
        request.out = TensorView(nullptr, 1 << 20, DType::float32);
        const std::string how = channel.how(request);
        expect(how.find("each rank folds all up to 4711 bytes") != std::string::npos, how);
        expect(how.starts_with("through slots, at most "), how);
        make_call<std::int32_t>(channel, {.collective = Collective::broadcast, .count = 100'000}, rank, 4, 0);
      },
      [&](const Segment& segment, int processors) {
        Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::off});
        tuning.fold_all = 4711;
        ++decided;
        return tuning;
      }));
  CHECK(decided == 1);
}

TEST_CASE("tuning: where ranks share processors, all that one sends to a root finds a slot", "[shm]") {
  for (const std::uint64_t crowd : {1U, 2U}) {
    require_well(run_ranks(
        2,
        [&](int, ShmChannel& channel) {
          for (const Collective collective : {Collective::gather, Collective::broadcast, Collective::reduce}) {
            Request request;
            request.collective = collective;
            request.in = {nullptr, 128 << 10, DType::float32};
            request.out = {nullptr, 128 << 10, DType::float32};
            const std::string how = channel.how(request);
            const std::string expected = crowd == 1 ? "at most 64 KiB a step" : "at most 128 KiB a step";  // of 512
            expect(how.find(expected) != std::string::npos, how);
          }
        },
        [&](const Segment& segment, int processors) {
          Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::off});
          tuning.slot = std::uint64_t{256} << 10;
          tuning.least_part = 0;
          tuning.crowd = crowd;
          return tuning;
        }));
  }
}

TEST_CASE("tuning: a call that the caches do not hold uses wide slots", "[shm]") {
  require_well(run_ranks(
      2,
      [&](int, ShmChannel& channel) {
        for (const Collective collective : {Collective::gather, Collective::broadcast, Collective::allreduce}) {
          for (const bool is_beyond : {false, true}) {
            Request request;
            request.collective = collective;
            request.in = request.out = {nullptr, (is_beyond ? 16 << 20 : 1 << 20) / sizeof(float), DType::float32};
            const std::string how = channel.how(request);
            const bool is_wide = how.find("at most 256 KiB a step") != std::string::npos;
            expect(is_wide == is_beyond, how);
          }
        }
      },
      [&](const Segment& segment, int processors) {
        Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::off});
        tuning.streamed = std::uint64_t{16} << 20;
        tuning.slot = tuning.small_slot;
        tuning.wide_slot = std::uint64_t{256} << 10;
        return tuning;
      }));
}

TEST_CASE("tuning: before a group has made a large call, it has taken no more memory than small slots need", "[shm]") {
  CHECK(Segment::first_bytes_for(2) <= Segment::bytes_for(2));
  for (const int size : {1, 2, 8, 64, 300}) {
    CHECK(Area::slot_bytes_for(size) >= Area::small_slot_bytes_for(size));
    CHECK(Area::slot_bytes_for(size) <=
          std::max({Area::small_slot_bytes_for(size), kMostCachedSlot, Area::wide_slot_bytes(Area::cache_bytes())}));
  }
}

TEST_CASE("tuning: where ranks have other settings, those of rank 0 count for all", "[shm]") {
  const TempDir store;
  for (const bool by_kernel : {true, false}) {
    std::vector<RankProcess> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank] {
        ::setenv("COL_CMA", (rank == 0) == by_kernel ? "on" : "off", 1);
        ::setenv("COL_CALIBRATE", rank == 1 ? "off" : "on", 1);
        WaitContext wait = wait_for(std::chrono::seconds(20));
        const auto factory = make_factory();
        const auto channel = factory->connect(
            request_of({.rank = rank, .size = 3, .store = make_file_store(store / std::to_string(by_kernel))}), wait);
        auto& shm = dynamic_cast<ShmChannel&>(*channel);
        const NativeCall call{.collective = Collective::alltoall, .count = 50'000};
        for (std::uint64_t number = 0; number < 4; ++number) make_call<std::int32_t>(shm, call, rank, 3, number);
        const std::string way = by_kernel ? "alltoall always" : "alltoall never";
        Request request;
        request.collective = Collective::barrier;
        expect(shm.how(request).find(way) != std::string::npos, shm.how(request));
        expect(shm.how(request).find("ranks try what is faster") != std::string::npos, shm.how(request));
      });
    }
    for (auto& rank : ranks) CHECK(rank.wait().text == "");
  }
}

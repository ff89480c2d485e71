// From what a machine takes to what a group does; and who measures it, and when.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/calibration/calibrator.hpp"
#include "backend/shm/calibration/kept_costs.hpp"
#include "backend/shm/calibration/measure.hpp"
#include "backend/shm/calibration/processors_nearby.hpp"
#include "backend/shm/native/movement.hpp"
#include "core/log.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::shm_backend;
using col::test::expect;
using col::test::TempDir;

namespace {

constexpr std::size_t kKib = 1024, kMib = kKib * kKib;

// A machine where the kernel's copy is `times` as dear as one through slots, byte by byte.
Costs machine_with(double times) {
  Costs costs;
  costs.line = 60'000;
  costs.yield = 400'000;
  costs.look = 25'000;
  costs.slot_start = 200'000;
  costs.slot_kib = costs.best_kib = 20'000;
  costs.kernel_start = 900'000;
  costs.kernel_kib = costs.exchange_kib = static_cast<std::uint64_t>(times * 20'000);
  costs.step_kib = {30'000, 28'000, 26'000};
  return costs;
}

GroupShape shape(int size, int processors) {
  return {.size = size,
          .processors = processors,
          .small_slot = 64 * kKib,
          .largest_slot = 256 * kKib,
          .cache_bytes = 2 * kMib};
}

Tuning decided(int size, int processors, const Costs& costs) {
  return decide(shape(size, processors), costs, KernelCopies::automatic);
}

// A calibrator on a machine of the test's own.
struct Bench {
  explicit Bench(const std::string& folder) {
    around.folder = folder;
    around.machine = "a machine";
    around.now = 1'000'000;
    around.measure_costs = [this]() -> std::optional<Costs> {
      ++measured;
      return costs;
    };
    around.measure_line = [this]() -> std::optional<std::uint64_t> {
      ++probed;
      return line;
    };
  }

  Tuning tuning(CalibrationSettings::When when = CalibrationSettings::When::automatic) {
    return Calibrator().tuning(shape(2, 2), {.when = when}, around);
  }
  Tuning::Source source(CalibrationSettings::When when = CalibrationSettings::When::automatic) {
    return tuning(when).source;
  }
  std::string path() const { return KeptCosts(around.folder, around.machine, 0).path(); }

  Calibrator::Surroundings around;
  std::optional<Costs> costs = machine_with(1);
  std::optional<std::uint64_t> line = machine_with(1).line;
  int measured = 0, probed = 0;
};

}  // namespace

TEST_CASE("decide: one copy by the kernel is taken where it is faster, and nowhere else", "[shm]") {
  const Tuning dear = decided(2, 2, machine_with(3));
  for (const std::uint64_t bits : dear.kernel) CHECK(bits == 0);
  const Tuning cheap = decided(2, 2, machine_with(0.5));
  CHECK(cheap.goes_by_kernel(KernelShape::vector_of_one, 512 * kKib));
  CHECK_FALSE(cheap.goes_by_kernel(KernelShape::vector_of_one, 8 * kKib));   // the start costs more
  CHECK_FALSE(cheap.goes_by_kernel(KernelShape::vector_of_one, 32 * kMib));  // both ranks copy through slots
  CHECK(cheap.goes_by_kernel(KernelShape::blocks_of_one, 32 * kMib));
  CHECK(cheap.goes_by_kernel(KernelShape::blocks_of_each, 512 * kKib));
  CHECK(cheap.goes_by_kernel(KernelShape::block_of_each, 32 * kMib));  // both copy by the kernel, too
  for (const KernelShape shape :
       {KernelShape::vector_to_one, KernelShape::vector_of_each, KernelShape::blocks_to_one}) {
    CHECK(cheap.goes_by_kernel(shape, 512 * kKib));
    CHECK_FALSE(cheap.goes_by_kernel(shape, 32 * kMib));
  }
  // Where every rank folds all, one meeting is enough.
  Costs far = machine_with(0.5);
  far.line = 600'000;
  far.slot_start = 5'000'000;
  far.kernel_start = 1;
  CHECK(decided(2, 2, far).fold_all > 128 * kKib);
  CHECK(decided(2, 2, far).goes_by_kernel(KernelShape::vector_to_one, 64 * kKib));
  CHECK_FALSE(decided(2, 2, far).goes_by_kernel(KernelShape::vector_of_each, 64 * kKib));
  CHECK(decided(2, 2, far).goes_by_kernel(KernelShape::vector_of_each, 512 * kKib));
  const Tuning many = decided(8, 8, machine_with(0.5));
  CHECK_FALSE(many.goes_by_kernel(KernelShape::vector_of_one, 512 * kKib));  // in a slot it stays in the caches
  CHECK_FALSE(many.goes_by_kernel(KernelShape::block_of_each, 512 * kKib));
  CHECK_FALSE(many.goes_by_kernel(KernelShape::vector_of_each, 512 * kKib));
  CHECK(many.goes_by_kernel(KernelShape::blocks_to_one, 512 * kKib));
  CHECK(many.goes_by_kernel(KernelShape::blocks_of_one, 512 * kKib));
  // The same machine, if its kernel refuses.
  Costs refused = machine_with(0.5);
  refused.kernel_start = refused.kernel_kib = 0;
  for (const std::uint64_t bits : decided(2, 2, refused).kernel) CHECK(bits == 0);
  // Slots are written in the best way, but not where ranks share a processor.
  Costs apart = machine_with(0.5);
  apart.best_kib = 8'000;
  CHECK_FALSE(decided(2, 2, apart).goes_by_kernel(KernelShape::vector_of_one, 512 * kKib));
  CHECK_FALSE(decided(2, 2, apart).goes_by_kernel(KernelShape::blocks_of_one, 32 * kMib));
  CHECK(decided(4, 2, apart).goes_by_kernel(KernelShape::blocks_of_one, 32 * kMib));
  // Two that copy at a time are in each other's way.
  Costs narrow = machine_with(0.5);
  narrow.exchange_kib = 30'000;
  CHECK(decided(2, 2, narrow).goes_by_kernel(KernelShape::vector_of_one, 512 * kKib));
  CHECK_FALSE(decided(2, 2, narrow).goes_by_kernel(KernelShape::block_of_each, 512 * kKib));
  CHECK_FALSE(decided(2, 2, narrow).goes_by_kernel(KernelShape::blocks_of_each, 512 * kKib));
}

TEST_CASE("decide: COL_CMA wins over what was measured", "[shm]") {
  const Tuning on = decide(shape(4, 2), machine_with(3), KernelCopies::on);
  const Tuning off = decide(shape(2, 2), machine_with(0.2), KernelCopies::off);
  for (std::size_t which = 0; which < kKernelShapes; ++which) {
    CHECK(on.goes_by_kernel(static_cast<KernelShape>(which), 1));
    CHECK_FALSE(on.goes_by_kernel(static_cast<KernelShape>(which), 0));
    CHECK_FALSE(off.goes_by_kernel(static_cast<KernelShape>(which), kMib));
  }
}

TEST_CASE("decide: slots are as large as pays, and fit the group", "[shm]") {
  CHECK(decided(2, 2, machine_with(1)).slot == 256 * kKib);
  Costs cliff = machine_with(1);
  cliff.step_kib = {30'000, 28'000, 45'000};  // slots of 256 KiB leave the cache
  CHECK(decided(2, 2, cliff).slot == 128 * kKib);
  cliff.step_kib = {30'000, 33'000, 35'000};  // more than the waits that they save
  CHECK(decided(2, 2, cliff).slot == 64 * kKib);
  CHECK(decided(8, 2, cliff).slot == 256 * kKib);  // where each step costs changes of process
  GroupShape narrow = shape(2, 2);
  narrow.largest_slot = 16 * kKib;
  narrow.small_slot = 16 * kKib;
  CHECK(decide(narrow, machine_with(1), KernelCopies::automatic).slot == 16 * kKib);
}

TEST_CASE("decide: the dearer a wait, the more is copied to save one", "[shm]") {
  const Tuning alone = decided(4, 4, machine_with(1)), crowded = decided(4, 2, machine_with(1));
  CHECK(crowded.fold_all > alone.fold_all);
  CHECK(crowded.least_part > alone.least_part);
  CHECK(crowded.two_waits > alone.two_waits);
  // Alone on its processor, a rank waits for little more than a line; what surrounds a wait is more than that.
  Costs wide = machine_with(1);
  wide.slot_start *= 2;
  CHECK(decided(4, 4, wide).two_waits > alone.two_waits);
  CHECK(crowded.looks < alone.looks);
  CHECK(crowded.crowd == 2);
  CHECK(decided(8, 2, machine_with(1)).fold_all < crowded.fold_all);  // there is more to fold
}

TEST_CASE("decide: no costs are too strange", "[shm]") {
  for (const std::uint64_t all : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'000'000'000'000}}) {
    Costs costs;
    costs.line = costs.yield = costs.look = costs.slot_start = costs.slot_kib = all;
    costs.kernel_start = costs.kernel_kib = all;
    costs.step_kib.fill(all);
    for (const int size : {1, 2, 3, 64, 1000}) {
      const Tuning tuning = decided(size, 2, costs);
      CHECK(tuning.slot >= 64 * kKib);
      CHECK(tuning.slot <= 256 * kKib);
      CHECK(tuning.looks >= 3);
      CHECK(in_words(tuning).find("slots of") != std::string::npos);
    }
  }
}

TEST_CASE("calibrator: the first job measures, and later ones believe it", "[shm]") {
  const TempDir folder;
  Bench bench(folder / "col");
  CHECK(bench.source() == Tuning::Source::measured);
  CHECK(bench.source() == Tuning::Source::kept);
  CHECK(bench.measured == 1);
  CHECK(bench.probed == 1);
  CHECK(bench.source(CalibrationSettings::When::now) == Tuning::Source::measured);
  CHECK(bench.source(CalibrationSettings::When::off) == Tuning::Source::off);
  CHECK(bench.measured == 2);
}

TEST_CASE("calibrator: what is kept can be believed blindly, and nothing is measured then", "[shm]") {
  const TempDir folder;
  Bench bench(folder / "col");
  using When = CalibrationSettings::When;
  CHECK(bench.source(When::kept) == Tuning::Source::unknown);
  CHECK_FALSE(std::filesystem::exists(folder / "col"));
  CHECK(bench.measured + bench.probed == 0);
  const Tuning measured = bench.tuning();
  CHECK(measured.source == Tuning::Source::measured);
  bench.line = *bench.line * 100;  // another state
  const Tuning kept = bench.tuning(When::kept);
  CHECK(kept.source == Tuning::Source::kept);
  // Then trials of the kernel begin at once, too, and else after slots have become as fast as they can.
  CHECK(measured.before_trials == 16 * kMib);
  CHECK(decide_as(measured, shape(2, 2)).before_trials == 16 * kMib);
  CHECK(kept.before_trials == 0);
  CHECK(decide_as(kept, shape(2, 2)).before_trials == 0);
  CHECK(bench.measured == 1);
  CHECK(bench.probed == 0);
}

TEST_CASE("calibrator: one process asks once, and what another rank 0 knew counts", "[shm]") {
  const TempDir folder;
  Bench bench(folder / "col");
  Calibrator first, second;
  const Tuning tuning = first.tuning(shape(2, 2), {}, bench.around);
  first.tuning(shape(4, 2), {}, bench.around);
  CHECK(bench.measured == 1);
  CHECK(bench.probed == 0);
  second.learn(tuning);
  CHECK(second.tuning(shape(2, 2), {}, bench.around).costs.kernel_kib == tuning.costs.kernel_kib);
  CHECK(bench.measured == 1);
  CHECK(bench.probed == 0);
  // That nothing could be measured counts too; that it was off does not.
  Calibrator third, fourth;
  bench.costs.reset();
  third.learn(decide(shape(2, 2), std::nullopt, KernelCopies::automatic));
  CHECK(third.tuning(shape(2, 2), {.when = CalibrationSettings::When::now}, bench.around).source ==
        Tuning::Source::unknown);
  CHECK(bench.measured == 2);
  fourth.learn(third.tuning(shape(2, 2), {}, bench.around));
  CHECK(fourth.tuning(shape(2, 2), {}, bench.around).source == Tuning::Source::unknown);
  CHECK(bench.measured == 2);
}

TEST_CASE("calibrator: in another state of the machine, it measures anew", "[shm]") {
  const TempDir folder;
  Bench bench(folder / "col");
  CHECK(bench.source() == Tuning::Source::measured);
  for (const auto& [line, source] :
       {std::pair(60'000 * 149 / 100, Tuning::Source::kept), std::pair(60'000 * 151 / 100, Tuning::Source::measured),
        std::pair(60'000 * 100 / 149, Tuning::Source::kept), std::pair(60'000 * 100 / 151, Tuning::Source::measured)}) {
    bench.line = static_cast<std::uint64_t>(line);
    INFO(line);
    CHECK(bench.source() == source);
  }
  bench.line.reset();  // no second processor was free: nothing speaks against what is kept
  CHECK(bench.source() == Tuning::Source::kept);
}

TEST_CASE("calibrator: where nothing can be kept, every job measures, and where another measures, none does", "[shm]") {
  const TempDir folder;
  std::ofstream(folder / "file") << "no folder";
  for (const std::string& place : {folder / "file", folder / "file/col", std::string()}) {
    Bench bench(place);
    CHECK(bench.source() == Tuning::Source::measured);
    CHECK(bench.source() == Tuning::Source::measured);
  }
  Bench bench(folder / "col");
  const auto other = KeptCosts(folder / "col", "a machine", 0).lock();
  CHECK_FALSE(other.is_taken);
  CHECK(bench.source() == Tuning::Source::unknown);
  CHECK(bench.measured == 0);
}

TEST_CASE("measure: what it finds is of this world", "[shm]") {
  // Where other programs use the processors, a second one is free only at times, and every try may be held up. With so
  // much patience, it may even be that both threads share one, and a line then takes them a time slice of the kernel.
  constexpr std::uint64_t kMostLine = 20'000'000;
  std::optional<Costs> costs;
  for (int attempt = 0; attempt < 10 && (!costs || costs->line >= kMostLine); ++attempt)
    costs = measure_costs(std::chrono::seconds(20), std::chrono::seconds(20));
  if (!costs) {
    // On another thread: it widens what the thread may run on.
    std::thread([] {
      const cpu_set_t beside = processors_beside(::sched_getcpu());
      expect(CPU_COUNT(&beside) == 0, "a second processor, and nothing was measured");
    }).join();
    return;
  }
  CHECK(costs->line > 1'000);
  CHECK(costs->line < kMostLine);
  CHECK(costs->look > 0);
  CHECK(costs->yield > costs->look);
  CHECK(costs->slot_kib > 0);
  for (const std::uint64_t cost : costs->step_kib) CHECK(cost > 0);
  INFO(fmt::format("kernel {} + {} / KiB", costs->kernel_start, costs->kernel_kib));
  CHECK((costs->kernel_kib > 0 || costs->kernel_start == 0));  // or it refuses
}

TEST_CASE("measure: it takes no longer than it may", "[shm]") {
  using namespace std::chrono;
  // The best of some: others may take the processor away from the test itself.
  auto best = 1h + 0us;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const auto begin = steady_clock::now();
    static_cast<void>(measure_costs(2ms, 2ms));
    best = std::min(best, duration_cast<microseconds>(steady_clock::now() - begin));
  }
  INFO(best.count() << " us");
  CHECK(best < 200ms);
}

TEST_CASE("measure: a rank that is bound to its processor finds a second one as another rank does", "[shm]") {
  // The other programs of this machine decide how often that is. So short a time would be over, mostly, if the bound
  // thread kept its processor from its helper. The rest may take long, as under a sanitizer.
  const auto finds = [] { return measure_costs(std::chrono::seconds(5), std::chrono::microseconds(250)) ? 1 : 0; };
  bool has_second = false;
  int bound = 0, free = 0, attempts = 0;
  std::thread([&] {  // which is bound
    const int own = ::sched_getcpu();
    const cpu_set_t beside = processors_beside(own);  // widens what this thread may run on
    has_second = CPU_COUNT(&beside) > 0;
    cpu_set_t all, only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(own), &only);
    expect(::sched_getaffinity(0, sizeof all, &all) == 0, "the processors of this thread");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (attempts < 3 || (has_second && free < 20 && std::chrono::steady_clock::now() < end)) {
      ++attempts;
      expect(::sched_setaffinity(0, sizeof only, &only) == 0, "a processor of its own");
      bound += finds();
      expect(::sched_setaffinity(0, sizeof all, &all) == 0, "all processors again");
      free += finds();
    }
  })
      .join();
  INFO(fmt::format("of {} attempts, {} succeeded bound, and {} free", attempts, bound, free));
  CHECK((free > 0) <= has_second);
  if (free >= 10)
    CHECK(bound * 4 >= free);
  else if (has_second)
    WARN("the second processor was busy all the time: nothing was compared");
}

TEST_CASE("measure: a time that is over before it begins gives nothing", "[shm]") {
  CHECK_FALSE(measure_costs(Duration(0), std::chrono::seconds(1)));
  CHECK_FALSE(measure_line(Duration(0)));
}

TEST_CASE("processors: lists as the kernel writes them", "[shm]") {
  const auto in_words = [](std::string_view list) {
    const cpu_set_t set = processors_in(list);
    std::string words;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) words += fmt::format(" {}", cpu);
    }
    return words;
  };
  CHECK(in_words("0-3,8") == " 0 1 2 3 8");
  CHECK(in_words("5") == " 5");
  CHECK(in_words("") == "");
  CHECK(in_words("0-") == "");
  CHECK(in_words("x") == "");
  CHECK(in_words("-3") == "");
  CHECK(in_words("1,,2") == "");
  CHECK(in_words("1022-4000000").size() == 10);  // 1022 and 1023: the set ends there
}

TEST_CASE("processors: the last-level caches that they need, as the kernel shows them", "[shm]") {
  const TempDir topology;
  const std::string cache = topology / "cpu1/cache/index3/";
  std::filesystem::create_directories(cache);
  const auto write = [&](const char* name, const char* text) { std::ofstream(cache + name) << text << '\n'; };
  const auto caches_of = [&](int processors, int one = 1) { return last_caches_of(processors, one, topology.path()); };
  CHECK(caches_of(2) == 0);
  write("size", "32768K");
  write("shared_cpu_list", "0-3");
  CHECK(caches_of(1) == 32 * kMib);
  CHECK(caches_of(4) == 32 * kMib);
  CHECK(caches_of(5) == 64 * kMib);
  CHECK(caches_of(2, 7) == 0);
  write("size", "1M");
  CHECK(caches_of(2) == kMib);
  // What a guest of the machine is shown of a cache that it shares with others.
  const std::string second = topology / "cpu1/cache/index2/";
  std::filesystem::create_directories(second);
  std::ofstream(second + "size") << "2048K\n";
  CHECK(caches_of(2) == kMib);
  write("size", "491520K");
  CHECK(caches_of(2) == 128 * kMib);
  write("shared_cpu_list", "0-1");
  CHECK(caches_of(2) == 64 * kMib);
  CHECK(caches_of(4) == 128 * kMib);
  write("size", "many");
  CHECK(caches_of(2) == 0);
}

TEST_CASE("decide: what a call writes goes past the caches if the last level cannot hold all that it touches",
          "[shm]") {
  GroupShape one = shape(4, 2);
  one.last_caches = 32 * kMib;
  CHECK(decide(one, std::nullopt, KernelCopies::off).streamed == 32 * kMib);
  one.last_caches = 0;  // a guess
  CHECK(decide(one, std::nullopt, KernelCopies::off).streamed == 64 * kMib);

  // Such calls use slots that are together twice the second-level cache, and leave room in the last level.
  const auto wide_of = [](int size, std::size_t cache, std::size_t last, std::size_t largest) {
    GroupShape of = shape(size, 2);
    of.cache_bytes = cache;
    of.last_caches = last;
    of.largest_slot = largest;
    const Tuning tuning = decide(of, std::nullopt, KernelCopies::off);
    CHECK(tuning.wide_slot >= tuning.slot);
    return tuning.wide_slot;
  };
  CHECK(wide_of(2, kMib, 32 * kMib, kMib) == kMib / 2);
  CHECK(wide_of(2, 2 * kMib, 32 * kMib, kMib) == kMib);
  CHECK(wide_of(16, kMib, 32 * kMib, kMib) == kMib / 4);
  CHECK(wide_of(2, kMib, 32 * kMib, kMib / 4) == kMib / 4);
  CHECK(wide_of(300, kMib, kMib, kMib) == shape(300, 2).small_slot);

  const auto touched = [](Collective collective) { return touched_by_all(row_of(collective), 10, 4); };
  CHECK(touched(Collective::barrier) == 0);
  CHECK(touched(Collective::allreduce) == 80);
  CHECK(touched(Collective::broadcast) == 40);
  CHECK(touched(Collective::reduce) == 50);
  CHECK(touched(Collective::gather) == 80);  // four blocks, and one place for four
  CHECK(touched(Collective::scatter) == 80);
  CHECK(touched(Collective::allgather) == 200);
  CHECK(touched(Collective::alltoall) == 320);
}

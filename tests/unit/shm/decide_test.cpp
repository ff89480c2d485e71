// A group's shape, what it leads to, and what the environment may say.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/native/movement.hpp"
#include "backend/shm/segment/last_caches.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::shm_backend;
using col::test::TempDir;

namespace {

constexpr std::size_t kKib = 1024, kMib = kKib * kKib;

GroupShape shape(int size, int processors) {
  return {.size = size,
          .processors = processors,
          .small_slot = 64 * kKib,
          .largest_slot = 256 * kKib,
          .cache_bytes = 2 * kMib};
}

Tuning decided(int size, int processors, TuningSettings settings = {}) {
  return decide(shape(size, processors), settings);
}

}  // namespace

TEST_CASE("decide: ranks try one copy by the kernel where it may be faster, and nowhere else", "[shm]") {
  const Tuning two = decided(2, 2);
  CHECK(two.before_trials == 16 * kMib);
  for (std::size_t which = 0; which < kKernelShapes; ++which) {
    const auto call = static_cast<KernelShape>(which);
    CHECK(two.goes_by_kernel(call, 512 * kKib));
    CHECK_FALSE(two.goes_by_kernel(call, 2 * kKib));  // the start costs more
  }
  // Beyond the cache, both ranks had better copy through slots, or fold a half each.
  for (const KernelShape call : {KernelShape::vector_of_one, KernelShape::vector_to_one, KernelShape::vector_of_each,
                                 KernelShape::blocks_to_one})
    CHECK_FALSE(two.goes_by_kernel(call, 32 * kMib));
  for (const KernelShape call : {KernelShape::blocks_of_one, KernelShape::block_of_each, KernelShape::blocks_of_each})
    CHECK(two.goes_by_kernel(call, 32 * kMib));
  // Where every rank folds all, one meeting is enough.
  CHECK_FALSE(two.goes_by_kernel(KernelShape::vector_of_each, two.fold_all / 2));

  const Tuning many = decided(8, 8);
  for (const KernelShape call : {KernelShape::vector_of_one, KernelShape::vector_to_one, KernelShape::vector_of_each,
                                 KernelShape::block_of_each})
    CHECK_FALSE(many.goes_by_kernel(call, 512 * kKib));  // what several want of one stays in the caches in a slot
  for (const KernelShape call : {KernelShape::blocks_to_one, KernelShape::blocks_of_one, KernelShape::blocks_of_each}) {
    CHECK(many.goes_by_kernel(call, 512 * kKib));
    CHECK(many.goes_by_kernel(call, 16 * kKib));
    CHECK_FALSE(decided(8, 2).goes_by_kernel(call, 16 * kKib));  // the two waits are changes of process
    CHECK(decided(8, 2).goes_by_kernel(call, 512 * kKib));
  }
  for (const std::uint64_t bits : decided(1, 1).kernel) CHECK(bits == 0);
}

TEST_CASE("decide: COL_CMA says whether the kernel copies, and COL_CALIBRATE whether ranks try anything", "[shm]") {
  const Tuning on = decided(4, 2, {.copies = KernelCopies::on, .tries = false});
  const Tuning off = decided(2, 2, {.copies = KernelCopies::off});
  const Tuning nothing = decided(2, 2, {.tries = false});
  for (std::size_t which = 0; which < kKernelShapes; ++which) {
    CHECK(on.goes_by_kernel(static_cast<KernelShape>(which), 1));
    CHECK_FALSE(on.goes_by_kernel(static_cast<KernelShape>(which), 0));
    CHECK_FALSE(off.goes_by_kernel(static_cast<KernelShape>(which), kMib));
    CHECK_FALSE(nothing.goes_by_kernel(static_cast<KernelShape>(which), kMib));
  }
  CHECK(on.tries == 0);
  CHECK(off.tries == 1);
  CHECK(in_words(nothing).starts_with("nothing is tried: slots of 256 KiB"));
  CHECK(in_words(decided(2, 2)).starts_with("ranks try what is faster: slots of 256 KiB"));
  // A group in the memory of another one does as that one.
  CHECK(decide_as(nothing, shape(2, 2)).tries == 0);
  CHECK(decide_as(on, shape(2, 2)).copies == KernelCopies::on);
  Tuning at_once = decided(4, 4);
  at_once.before_trials = 0;
  CHECK(decide_as(at_once, shape(2, 2)).before_trials == 0);
}

TEST_CASE("decide: the environment says on or off", "[shm]") {
  const auto with = [](const char* name, const char* value) {
    ::setenv(name, value, 1);
    std::string said;
    TuningSettings settings;
    try {
      settings = TuningSettings::of_environment();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      said = error.message();
    }
    ::unsetenv(name);
    if (!said.empty()) return said;
    return std::string(settings.tries ? "tries" : "tries nothing") + (settings.copies == KernelCopies::on    ? ", on"
                                                                      : settings.copies == KernelCopies::off ? ", off"
                                                                                                             : "");
  };
  CHECK(with("COL_CALIBRATE", "on") == "tries");
  CHECK(with("COL_CALIBRATE", "off") == "tries nothing");
  for (const char* old : {"auto", "now", "kept", "maybe"})
    CHECK(with("COL_CALIBRATE", old) == fmt::format("COL_CALIBRATE={} is none of on, off", old));
  CHECK(with("COL_CMA", "auto") == "tries");
  CHECK(with("COL_CMA", "on") == "tries, on");
  CHECK(with("COL_CMA", "off") == "tries, off");
  CHECK(with("COL_CMA", "1") == "COL_CMA=1 is none of auto, off, on");
}

TEST_CASE("decide: the slots of a rank fill its cache, and fit the group", "[shm]") {
  const auto slot_of = [](std::size_t cache, std::size_t largest, std::size_t small = 64 * kKib) {
    GroupShape of = shape(2, 2);
    of.cache_bytes = cache;
    of.largest_slot = largest;
    of.small_slot = small;
    return decide(of, {}).slot;
  };
  CHECK(slot_of(2 * kMib, kMib) == 256 * kKib);
  CHECK(slot_of(kMib, kMib) == 256 * kKib);
  CHECK(slot_of(512 * kKib, kMib) == 128 * kKib);
  CHECK(slot_of(128 * kKib, kMib) == 64 * kKib);
  CHECK(slot_of(0, kMib) == 64 * kKib);
  CHECK(slot_of(2 * kMib, 64 * kKib) == 64 * kKib);  // no memory for more
  CHECK(slot_of(2 * kMib, 16 * kKib, 16 * kKib) == 16 * kKib);
}

TEST_CASE("decide: ranks that share a processor look less before they yield, and wait less often", "[shm]") {
  CHECK(decided(4, 2).looks < decided(4, 4).looks);
  CHECK(decided(4, 2).crowd == 2);
  CHECK(decided(5, 2).crowd == 3);
  // The dearer a wait, the more is copied to save one.
  CHECK(decided(4, 2).fold_all > decided(4, 4).fold_all);
  CHECK(decided(4, 2).least_part > decided(4, 4).least_part);
  CHECK(decided(4, 2).two_waits > decided(4, 4).two_waits);
  CHECK(decided(8, 2).fold_all < decided(2, 2).fold_all);  // there is more to fold
}

TEST_CASE("last caches: lists as the kernel writes them", "[shm]") {
  CHECK(processors_in("0-3,8") == 5);
  CHECK(processors_in("5") == 1);
  CHECK(processors_in("") == 0);
  CHECK(processors_in("0-") == 0);
  CHECK(processors_in("x") == 0);
  CHECK(processors_in("-3") == 0);
  CHECK(processors_in("3-1") == 0);
  CHECK(processors_in("1,,2") == 0);
}

TEST_CASE("last caches: those that processors need, as the kernel shows them", "[shm]") {
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
  // A guest of the machine is shown all of a cache that it shares with others.
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
  CHECK(decide(one, {}).streamed == 32 * kMib);
  one.last_caches = 0;  // a guess
  CHECK(decide(one, {}).streamed == 64 * kMib);

  // Such calls use slots that are together twice the second-level cache, and leave room in the last level.
  const auto wide_of = [](int size, std::size_t cache, std::size_t last, std::size_t largest) {
    GroupShape of = shape(size, 2);
    of.cache_bytes = cache;
    of.last_caches = last;
    of.largest_slot = largest;
    const Tuning tuning = decide(of, {});
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

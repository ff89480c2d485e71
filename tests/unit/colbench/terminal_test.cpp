// The rest of what a terminal shows, beside tables: sentences, and a warning of other work.
#include "colbench/commands/command.hpp"
#include "colbench/machine/other_work.hpp"
#include "common/text.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
namespace tools = col::tools;
using Catch::Approx;

namespace {

// 2 processors for 200 ms are 40 ticks of 10 ms: user nice system idle iowait irq softirq steal guest guest_nice.
constexpr const char* kBefore = "cpu  1000 10 200 5000 30 4 6 50 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";

OtherWork work_until(const char* after, double own_seconds) {
  const auto first = host_times(kBefore, 1), last = host_times(after, 1 + own_seconds);
  REQUIRE(first);
  REQUIRE(last);
  return other_work(*first, *last);
}

}  // namespace

TEST_CASE("other work: what is neither idle nor ours, with what the hypervisor took", "[colbench]") {
  CHECK(work_until("cpu  1000 10 200 5038 32 4 6 50 0 0\n", 0).all() == 0);  // idle, and waiting for a disk
  const OtherWork work = work_until("cpu  1012 12 204 5016 30 5 7 54 0 0\n", 0.08);
  CHECK(work.stolen == Approx(4.0 / 40));
  CHECK(work.processes == Approx((40.0 - 16 - 4 - 8) / 40));
  CHECK(work.all() == Approx(0.4));
  CHECK(work_until("cpu  1020 10 200 5020 30 4 6 50 0 0\n", 0.25).all() == 0);  // all of it is ours
  CHECK(work_until(kBefore, 0).all() == 0);                                     // no tick has passed
}

TEST_CASE("other work: a host that does not tell is not accused", "[colbench]") {
  for (const char* text : {"", "cpu", "cpu  1 2 3", "cpu  1 2 x 4 5 6 7 8", "intr 1 2 3 4 5 6 7 8 9"})
    CHECK_FALSE(host_times(text, 0));
  CHECK_FALSE(other_work_now([] { return std::optional<HostTimes>(); }, [] { FAIL("it waits in vain"); }));
  int pauses = 0;
  static int reads;
  reads = 0;
  const auto work =
      other_work_now([] { return host_times(reads++ == 0 ? kBefore : "cpu  1020 10 200 5020 30 4 6 50 0 0\n", 0); },
                     [&] { ++pauses; });
  CHECK(pauses == 1);
  REQUIRE(work);
  CHECK(work->all() == Approx(0.5));
  CHECK(host_times());
}

TEST_CASE("other work: the warning says how much, what comes of it, and what to do; up to 10 % there is none",
          "[colbench]") {
  CHECK(other_work_warning({}).empty());
  CHECK(other_work_warning({.processes = 0.06, .stolen = 0.04}).empty());
  CHECK(other_work_warning({.processes = 0.35, .stolen = 0.01}) ==
        "other work takes 36 % of the processors: times will be longer, and vary; end it (top shows it), or measure "
        "later");
  CHECK(other_work_warning({.processes = 0, .stolen = 0.12})
            .starts_with("other work takes 12 % of the processors, 12 % by way of the hypervisor: "));
}

TEST_CASE("terminal: sentences are wrapped at its width, and tables stay", "[colbench]") {
  const std::string table = "coll      algo    size   t50\n────────────────────────────────────────────\n";
  const std::string sentence = "# all rows: shm, float32, sum, 2 ranks; * chosen by the library";
  CHECK(with_sentences_wrapped(sentence, 80) == sentence);
  CHECK(with_sentences_wrapped(sentence + "\n" + table, 40) ==
        "# all rows: shm, float32, sum, 2 ranks;\n  * chosen by the library\n" + table);
  CHECK(with_sentences_wrapped(table + "ranks 1 and 2 are slow with each other: 3.35 ms, 1.57 times", 40) ==
        table + "ranks 1 and 2 are slow with each other:\n  3.35 ms, 1.57 times");
  CHECK(with_sentences_wrapped("\x1b[2m" + sentence + "\x1b[0m\n", 40).starts_with("\x1b[2m# all rows: shm, float32,"));
  CHECK(with_sentences_wrapped("", 40).empty());
  CHECK(with_sentences_wrapped("\n\n", 40) == "\n\n");
  const std::string word(100, 'x');
  CHECK(with_sentences_wrapped(word, 40) == word);
}

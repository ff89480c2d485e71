// The arithmetic of the tools and tests, and the definitions that check it.
#include <cstdint>
#include <string>
#include <vector>

#include <col/collective.hpp>

#include "colcheck/selftest/agreement.hpp"
#include "colcheck/selftest/definition.hpp"
#include "support/catch.hpp"

namespace col::colcheck {
TEST_CASE("arithmetic: what calls and operators give is what their definitions say", "[colcheck]") {
  for (int i = 0; i < static_cast<int>(Collective::barrier); ++i) {
    const Agreement agreement = compare(static_cast<Collective>(i));
    CHECK(agreement.difference == "");
    CHECK(agreement.elements > 50);
  }
  CHECK(compare_folds().difference == "");
  CHECK(compare_folds().elements > 30'000);
}

TEST_CASE("arithmetic: an error in it, or in a definition, shows in every collective and step", "[colcheck]") {
  for (int i = 0; i < static_cast<int>(Collective::barrier); ++i) {
    INFO(to_string(static_cast<Collective>(i)));
    CHECK(compare(static_cast<Collective>(i), {Mistake::In::arithmetic}).difference != "");
    CHECK(compare(static_cast<Collective>(i), {Mistake::In::definition}).difference != "");
  }
  CHECK(compare_folds({Mistake::In::definition}).difference != "");
  for (const Bug bug : kFoldBugs) {
    INFO("bug " << static_cast<int>(bug));
    CHECK(compare_folds({Mistake::In::arithmetic, bug}).difference != "");
  }
}

TEST_CASE("arithmetic: the self-test has all of this in a line", "[colcheck]") {
  const AgreementReport report = compare_all();
  CHECK(report.is_good);
  CHECK(report.text.find("39 mistakes planted in either show") != std::string::npos);
  CHECK(report.text.find('\n') == std::string::npos);
}

TEST_CASE("definition: numbers that anybody can work out", "[colcheck]") {
  using namespace definition;
  const auto sum = [](const Numbers& x) { return folded(ReduceOp::sum, x, 3); };
  const Question q{{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}, 1, {{1, 1, 1}, {0, 1, 2}, {3, 0, 0}}, sum};
  CHECK(allreduce(q) == World(3, {111, 222, 333}));
  CHECK(reduce(q) == World{{}, {111, 222, 333}, {}});
  CHECK(scan(q) == World{{1, 2, 3}, {11, 22, 33}, {111, 222, 333}});
  CHECK(exscan(q) == World{{}, {1, 2, 3}, {11, 22, 33}});
  CHECK(reduce_scatter(q) == World{{111}, {222}, {333}});
  CHECK(broadcast(q) == World(3, {10, 20, 30}));
  CHECK(gather(q) == World{{}, {1, 2, 3, 10, 20, 30, 100, 200, 300}, {}});
  CHECK(allgather(q)[2] == gather(q)[1]);
  CHECK(scatter(q) == World{{}, {10}, {20, 30}});
  CHECK(alltoall(q) == World{{1, 100, 200, 300}, {2, 10}, {3, 20, 30}});
  CHECK(folded(ReduceOp::avg, std::vector<std::int8_t>{100, 100}, 2) == -28);
  CHECK(folded(ReduceOp::avg, std::vector<std::int8_t>{-3, -4}, 2) == -3);
  CHECK(narrowed<float16>(2049).bits == float16(2048.0F).bits);
  CHECK(narrowed<float16>(65520).bits == 0x7c00);
  CHECK(narrowed<float8_e4m3fn>(464).bits == 0x7e);
  CHECK(narrowed<bfloat16>(-0x1p-133F).bits == 0x8001);
}

}  // namespace col::colcheck

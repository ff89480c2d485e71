#include <col/collective.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "support/catch.hpp"

using namespace col;

namespace {

// What the rows of these should say is written by hand below. A new collective needs no line here.
constexpr std::array kByHand = {Collective::allreduce,       Collective::reduce,     Collective::broadcast,
                                Collective::allgather,       Collective::allgatherv, Collective::gather,
                                Collective::gatherv,         Collective::scatter,    Collective::reduce_scatter,
                                Collective::reduce_scatterv, Collective::scatterv,   Collective::alltoall,
                                Collective::alltoallv,       Collective::scan,       Collective::exscan,
                                Collective::barrier,         Collective::send,       Collective::recv};

// Those of them for which it holds, in words and in the order of the table.
template <class Predicate>
std::string those(Predicate holds) {
  std::string names;
  for (const CollectiveRow& row : kCollectives) {
    const bool by_hand = std::ranges::any_of(kByHand, [&](Collective c) { return to_string(c) == row.name; });
    if (by_hand && holds(row)) names += (names.empty() ? "" : " ") + std::string(row.name);
  }
  return names;
}

}  // namespace

TEST_CASE("collective: each row has the name of its enumerator", "[core]") {
  CHECK(row_of(Collective::allreduce).name == "allreduce");
  CHECK(row_of(Collective::reduce_scatterv).name == "reduce_scatterv");
  CHECK(row_of(Collective::exscan).name == "exscan");
  CHECK(row_of(Collective::recv).name == "recv");
  std::set<std::string_view> names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    CHECK(to_string(collective) == row_of(collective).name);
    CHECK(collective_from_string(row_of(collective).name) == collective);
    names.insert(row_of(collective).name);
  }
  CHECK(names.size() == kCollectives.size());
  CHECK(to_string(static_cast<Collective>(kCollectiveCount)) == "?");
}

TEST_CASE("collective: what the rows say", "[core]") {
  CHECK(those([](const auto& row) { return row.reduces(); }) ==
        "allreduce reduce reduce_scatter reduce_scatterv scan exscan");
  CHECK(those([](const auto& row) { return row.rooted; }) == "reduce broadcast gather gatherv scatter scatterv");
  CHECK(those([](const auto& row) { return row.has_counts(); }) ==
        "allgatherv reduce_scatterv gatherv scatterv alltoallv");
  CHECK(those([](const auto& row) { return row.has_private_counts(); }) == "gatherv scatterv alltoallv");
  CHECK(those([](const auto& row) { return row.is_message; }) == "send recv");
  CHECK(those([](const auto& row) { return !row.has_input(false); }) == "broadcast scatter scatterv barrier recv");
  CHECK(those([](const auto& row) { return !row.has_output(false); }) == "reduce gather gatherv barrier send");
  CHECK(those([](const auto& row) { return !row.has_input(true); }) == "broadcast barrier recv");
  CHECK(those([](const auto& row) { return !row.has_output(true); }) == "barrier send");
  CHECK(those([](const auto& row) { return !row.has_in_place(); }) == "broadcast barrier send recv");
  CHECK(those([](const auto& row) { return !row.has_data(); }) == "barrier");
  CHECK(those([](const auto& row) { return !row.has_blocks(); }) ==
        "allreduce reduce broadcast scan exscan barrier send recv");
}

TEST_CASE("collective: a row contradicts itself nowhere", "[core]") {
  for (const CollectiveRow& row : kCollectives) {
    INFO(row.name);
    CHECK((!row.in_on_root || row.in != Extent::nothing));
    CHECK((!row.out_on_root || row.out != Extent::nothing));
    CHECK((row.rooted || !(row.in_on_root || row.out_on_root)));
    CHECK((!row.has_counts() || row.has_blocks()));
    CHECK(row.has_counts() == (row.name.ends_with("v") && !row.is_message));
    // One block against all of them, or the same on both sides.
    const bool one_of_all = (row.in == Extent::block) != (row.out == Extent::block);
    CHECK((!row.has_in_place() || row.in == row.out || (one_of_all && row.has_blocks())));
  }
}

TEST_CASE("collective: bus factors are those of nccl-tests", "[core]") {
  CHECK(row_of(Collective::allreduce).bus_factor(4) == 1.5);
  CHECK(row_of(Collective::allgather).bus_factor(4) == 0.75);
  CHECK(row_of(Collective::alltoallv).bus_factor(4) == 0.75);
  CHECK(row_of(Collective::broadcast).bus_factor(4) == 1);
  CHECK(row_of(Collective::scan).bus_factor(4) == 1);
  CHECK(row_of(Collective::allreduce).bus_factor(1) == 0);
}

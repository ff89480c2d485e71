#include "group/diagnosis/history.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using col::group::Calls;
using col::group::CollectiveCall;
using col::group::first_difference;
using col::group::History;

namespace {

constexpr int kRanks = 3;

// Makes calls of a rank, one after the other.
class Caller {
 public:
  explicit Caller(int rank = 0) : rank_(rank) {}

  Caller& allreduce(std::size_t count) {
    CollectiveCall call;
    call.request.collective = col::Collective::allreduce;
    call.request.in = {nullptr, count, col::DType::int32};
    return add(call);
  }
  Caller& alltoallv(const std::vector<std::size_t>& in, const std::vector<std::size_t>& out) {
    CollectiveCall call;
    call.request.collective = col::Collective::alltoallv;
    call.in_counts = in;
    call.out_counts = out;
    return add(call);
  }

  const History& history() const { return history_; }
  Calls calls() const { return history_.calls(rank_, kRanks); }
  // As another rank reads it.
  Calls posted(bool has_left = false) const {
    Calls own = calls();
    own.has_left = has_left;
    return Calls::decode(own.encode());
  }
  std::optional<std::uint64_t> differs_from(const Calls& other, int rank) const {
    return first_difference(history_, calls(), rank_, other, rank, kRanks);
  }

 private:
  Caller& add(CollectiveCall& call) {
    call.call = fingerprint(7, call.request, call.form);
    history_.add(call, ++sequence_);
    return *this;
  }

  const int rank_;
  std::uint64_t sequence_ = 0;
  History history_;
};

}  // namespace

TEST_CASE("history: equal calls in a row are one run, and all are found by their number", "[group]") {
  Caller rank;
  rank.allreduce(5).allreduce(5).allreduce(5).allreduce(6);
  const Calls calls = rank.calls();
  REQUIRE(calls.runs.size() == 2);
  CHECK(calls.runs[0].times == 3);
  CHECK(calls.at(3) == "allreduce of 5 int32, sum");
  CHECK(calls.at(4) == "allreduce of 6 int32, sum");
  CHECK_FALSE(calls.at(5));
  CHECK_FALSE(calls.at(0));
  CHECK(calls.end() == 5);
  CHECK(rank.history().last() == 4);
  CHECK(rank.history().operation(3, 0, kRanks).sequence == 3);
}

TEST_CASE("history: what is posted is read again, whatever its text is", "[group]") {
  Calls calls;
  calls.runs = {{7, 2, "a\nb 1 2 3\n"}, {9, 1, ""}, {0x8000000000000000, 1'000'000'000'000, std::string("\0\xff", 2)}};
  calls.has_left = GENERATE(false, true);
  calls.why = GENERATE(std::string(), std::string(R"({"code":"mismatch"})"));
  calls.held_up_by = GENERATE(col::group::kSomebody, col::group::kNobody, 12);
  calls.sent = {{{3, -7}, 5}, {{4, 0}, 1'000'000'000'000}};
  const Calls read = Calls::decode(calls.encode());
  CHECK(read.sent == calls.sent);
  REQUIRE(read.runs.size() == calls.runs.size());
  for (std::size_t i = 0; i < read.runs.size(); ++i) {
    CHECK(read.runs[i].first == calls.runs[i].first);
    CHECK(read.runs[i].times == calls.runs[i].times);
    CHECK(read.runs[i].text == calls.runs[i].text);
  }
  CHECK(read.has_left == calls.has_left);
  CHECK(read.why == calls.why);
  CHECK(read.held_up_by == calls.held_up_by);
}

TEST_CASE("history: the oldest calls go, and the others stay in their order", "[group]") {
  Caller rank;
  for (std::size_t i = 1; i <= 1000; ++i) rank.allreduce(i);
  const Calls calls = rank.calls();
  REQUIRE(calls.runs.size() >= 50);
  CHECK_FALSE(calls.at(1));
  for (std::uint64_t i = calls.runs.front().first; i <= 1000; ++i)
    CHECK(calls.at(i) == "allreduce of " + std::to_string(i) + " int32, sum");
}

TEST_CASE("history: the first call that differs is found, however many came after it", "[group]") {
  Caller own(0), other(1);
  own.allreduce(5).allreduce(5).allreduce(8).allreduce(6);
  other.allreduce(5).allreduce(5).allreduce(9).allreduce(6).allreduce(7);
  CHECK(own.differs_from(other.posted(), 1) == 3);
  CHECK(other.differs_from(own.posted(), 0) == 3);
}

TEST_CASE("history: who has come less far does not differ, but who has left does", "[group]") {
  Caller own(0), other(1), none(2);
  own.allreduce(5).allreduce(5).allreduce(6);
  other.allreduce(5);
  CHECK_FALSE(own.differs_from(other.posted(), 1));
  CHECK_FALSE(other.differs_from(own.posted(), 0));
  CHECK_FALSE(own.differs_from(none.posted(), 2));
  CHECK(own.differs_from(other.posted(true), 1) == 2);
  CHECK(own.differs_from(none.posted(true), 2) == 1);
  CHECK_FALSE(other.differs_from(own.posted(true), 0));
  CHECK(other.posted(true).at(2) == "nothing more, and left the group");
}

TEST_CASE("history: calls that are kept on one rank alone are not compared", "[group]") {
  Caller own(0), other(1);
  for (std::size_t i = 1; i <= 500; ++i) own.allreduce(i);
  other.allreduce(1).allreduce(3);  // differs in the second, which is long forgotten
  CHECK_FALSE(own.differs_from(other.posted(), 1));
}

TEST_CASE("history: counts that differ from rank to rank are compared by the block", "[group]") {
  Caller own(0), right(1), wrong(1);
  own.alltoallv({0, 1, 2}, {0, 4, 5}).alltoallv({0, 1, 2}, {0, 4, 6});
  right.alltoallv({4, 0, 9}, {1, 0, 9}).alltoallv({4, 0, 9}, {1, 0, 9});
  wrong.alltoallv({4, 0, 9}, {1, 0, 9}).alltoallv({3, 0, 9}, {1, 0, 9});
  CHECK_FALSE(own.differs_from(right.posted(), 1));
  CHECK(own.differs_from(wrong.posted(), 1) == 2);
}

// Receives that name no sender.
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::expect;
using col::test::on_each_backend;
using namespace std::chrono_literals;

TEST_CASE("recv_any: takes all, in order from each, and says from whom", "[group]") {
  constexpr int kEach = 8;
  on_each_backend(4, [](Group& group) {
    if (group.rank() != 0) {
      for (int i = 0; i < kEach; ++i) {
        std::vector<int> data(i % 2 == 0 ? 1000u : 40000u, group.rank() * 100 + i);
        group.send(data, 0, {.tag = i % 2});
      }
      group.send(std::vector<int>{group.rank()}, 0, {.tag = 2});
      return;
    }
    std::map<std::pair<int, int>, int> next;  // by source and tag
    for (int i = 0; i < kEach * 3; ++i) {
      // A rank sends both kinds by turns, so that one kind alone can be missing for a while.
      const int tag = i % 2;
      std::vector<int> data(tag == 0 ? 1000u : 40000u);
      const int source = group.recv_any(data, {.tag = tag});
      const int expected = source * 100 + 2 * next[{source, tag}]++ + tag;
      expect(source >= 1 && source <= 3 && data.front() == expected && data.back() == expected,
             fmt::format("{} from {}, not {}", data.back(), source, expected));
    }
    expect(next.size() == 6);
    for (const auto& [from, count] : next) expect(count == kEach / 2);
    for (const int source : {3, 1, 2}) {
      std::vector<int> data{0};
      group.recv(data, source, {.tag = 2});
      expect(data[0] == source);
    }
  });
}

TEST_CASE("recv_any: many asynchronous ones at once get a message each", "[group]") {
  on_each_backend(3, [](Group& group) {
    constexpr int kEach = 10;
    if (group.rank() != 2) {
      for (int i = 0; i < kEach; ++i) group.send(std::vector<int>{group.rank(), i}, 2);
      return;
    }
    std::vector<std::array<int, 2>> got(2 * kEach);
    std::vector<Work> works;
    for (auto& data : got) works.push_back(group.irecv_any(data));
    std::array<int, 2> seen{};
    for (std::size_t i = works.size(); i-- > 0;) {
      works[i].wait();
      expect(works[i].source() == got[i][0]);
    }
    for (const auto& [source, number] : got) expect(number == seen[static_cast<std::size_t>(source)]++);
  });
}

TEST_CASE("recv_any: also takes what oneself has sent before", "[group]") {
  for (const int ranks : {1, 3}) {
    on_each_backend(ranks, [](Group& group) {
      const int me = group.rank(), n = group.size();
      std::vector<int> got{-1};
      group.send(std::vector<int>{me}, me);
      expect(group.recv_any(got) == me && got[0] == me);
      group.barrier();
      if (n == 1) return;
      std::vector<int> sent{10 + me};
      Work send = group.isend(sent, (me + 1) % n);
      group.send(sent, me);
      int sum = 0;
      for (int i = 0; i < 2; ++i) {
        const int source = group.recv_any(got);
        expect(got[0] == 10 + source);
        sum += source;
      }
      expect(sum == me + (me + n - 1) % n);
      send.wait();
    });
  }
}

TEST_CASE("recv_any: takes nothing of another count", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const std::size_t sent : {2u, 4u}) {
      std::vector<int> got(3, -1);
      const auto body = [&](Group& group, col::Context&) {
        if (group.rank() == 0)
          group.send(std::vector<int>(sent, 1), 1);
        else
          group.recv_any(got, {.timeout = 700ms});
        group.barrier();
      };
      const auto outcomes = col::test::run_threads(2, col::test::joined(2, backend, body));
      INFO(backend << ": " << sent << " sent\n" << col::test::show(outcomes));
      CHECK(got == std::vector<int>(3, -1));
      // Where a message waits at its sender's, nobody can tell that this was the one meant.
      CHECK((outcomes[1].code == ErrorCode::mismatch || outcomes[1].code == ErrorCode::timeout));
      CHECK(outcomes[0].code.has_value());
      CHECK(outcomes[0].seconds < 5);
    }
  }
}

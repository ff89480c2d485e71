#include <array>
#include <functional>
#include <numeric>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::test::expect;
using col::test::on_each_backend;
using namespace std::chrono_literals;

TEST_CASE("point to point: a message arrives, of any size", "[group]") {
  on_each_backend(2, [](col::Group& group) {
    for (const std::size_t count : {0u, 1u, 1000u, 300000u}) {
      std::vector<int> data(count);
      if (group.rank() == 0) std::iota(data.begin(), data.end(), 7);
      if (group.rank() == 0)
        group.send(data, 1);
      else
        group.recv(data, 0);
      for (std::size_t i = 0; i < count; ++i) expect(data[i] == static_cast<int>(i) + 7);
    }
  });
}

TEST_CASE("point to point: tags keep messages apart, order holds within a tag", "[group]") {
  on_each_backend(2, [](col::Group& group) {
    std::array<int, 1> a{}, b{};
    if (group.rank() == 0) {
      group.send(std::array{10}, 1, {.tag = 3});
      group.send(std::array{11}, 1, {.tag = 3});
      group.send(std::array{20}, 1, {.tag = -4});
    } else {
      group.recv(a, 0, {.tag = 3});
      group.recv(b, 0, {.tag = 3});
      expect(a[0] == 10 && b[0] == 11);
      group.recv(a, 0, {.tag = -4});
      expect(a[0] == 20);
    }
  });
}

TEST_CASE("point to point: a ring of sendrecv does not deadlock", "[group]") {
  on_each_backend(5, [](col::Group& group) {
    const int n = group.size();
    const int next = (group.rank() + 1) % n, previous = (group.rank() + n - 1) % n;
    std::vector<int> value(50000, group.rank()), got(value.size());
    for (int round = 0; round < n; ++round) {
      group.sendrecv(value, next, got, previous);
      value.swap(got);
    }
    expect(value.front() == group.rank() && value.back() == group.rank());
  });
}

TEST_CASE("point to point: messages to oneself and to others mix", "[group]") {
  on_each_backend(2, [](col::Group& group) {
    const int me = group.rank(), other = 1 - me;
    std::array<int, 2> got{};
    group.send(std::array{me, 1}, me);
    group.sendrecv(std::array{me, 2}, other, got, other);
    expect(got == std::array{other, 2});
    group.recv(got, me);
    expect(got == std::array{me, 1});
  });
}

TEST_CASE("point to point: a longer message is a mismatch on both sides, and kills nobody", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      std::vector<int> data(rank == 0 ? 1000u : 10u);
      if (rank == 0)
        group.send(data, 1);
      else
        group.recv(data, 0);
      // Shared memory keeps a short message, so that its sender may learn of it only in the next call that waits.
      if (backend == "shm") group.barrier();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const auto& outcome : outcomes) {
      CHECK(outcome.code == col::ErrorCode::mismatch);
      CHECK(outcome.seconds < 5);
    }
  }
}

TEST_CASE("point to point: a rank outside the group is refused", "[group]") {
  on_each_backend(2, [](col::Group& group) {
    try {
      group.send(std::array{1}, 2);
      expect(false, "no error");
    } catch (const col::Error& error) {
      expect(error.code() == col::ErrorCode::invalid_argument, error.what());
      expect(error.message().find("its ranks are 0 to 1") != std::string::npos, error.what());
    }
  });
}

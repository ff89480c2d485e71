// The object forms: structs, texts and vectors, of sizes that only their owners know.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

struct Settings {
  int epochs;
  double rate;
  std::array<char, 6> tag;
  bool operator==(const Settings&) const = default;
};

Settings settings_of(int rank) {
  return {rank * 3, rank / 4.0, {'r', static_cast<char>('0' + rank), 0, 0, 0, 0}};
}

// Empty on rank 0, longer than a channel keeps on rank 2.
std::string text_of(int rank) {
  return std::string(rank == 2 ? 100000u : static_cast<std::size_t>(rank) * 5, static_cast<char>('a' + rank));
}

std::vector<std::uint64_t> numbers_of(int rank) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>((rank + 1) % 3) * 1000, static_cast<std::uint64_t>(rank)
                                                                                         << 40);
}

// Every object form, for objects that `make` makes for a rank.
template <class Make>
void all_forms(Group& group, const Make& make) {
  using T = decltype(make(0));
  const int n = group.size(), me = group.rank();
  std::vector<T> all;
  for (int r = 0; r < n; ++r) all.push_back(make(r));
  for (int root = 0; root < n; ++root) {
    T object = make(me);
    group.broadcast_object(object, {.root = root});
    expect(object == make(root));
    expect(group.gather_object(make(me), {.root = root}) == (me == root ? all : std::vector<T>()));
    expect(group.scatter_object(me == root ? all : std::vector<T>(), {.root = root}) == make(me));
  }
  expect(group.allgather_object(make(me)) == all);
  if (n == 1) {
    group.send_object(make(0), 0);
    expect(group.recv_object<T>(0) == make(0));
    return;
  }
  // Around in a ring, the first rank sends first; two at a time, by tag.
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  for (const int tag : {0, 8}) {
    if (me == 0) group.send_object(make(me), next, {.tag = tag});
    expect(group.recv_object<T>(previous, {.tag = tag}) == make(previous));
    if (me != 0) group.send_object(make(me), next, {.tag = tag});
  }
}

void expect_other_type(const std::function<void()>& call) {
  expect_error(ErrorCode::mismatch, "both sides must use the same type", call);
}

TEST_CASE("objects: structs, texts and vectors reach whom they should, as threads", "[group]") {
  for (const int n : {1, 2, 4}) {
    threads_on_each_backend(n, [](Group& group) {
      all_forms(group, settings_of);
      all_forms(group, text_of);
      all_forms(group, numbers_of);
      all_forms(group, [](int rank) { return rank * 100; });
    });
  }
}

TEST_CASE("objects: structs, texts and vectors reach whom they should, as processes", "[group]") {
  processes_on_each_backend(3, [](Group& group) {
    all_forms(group, settings_of);
    all_forms(group, text_of);
    all_forms(group, numbers_of);
  });
}

TEST_CASE("objects: to oneself", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    group.send_object(text_of(1), group.rank());
    group.send_object(settings_of(3), group.rank());
    expect(group.recv_object<std::string>(group.rank()) == text_of(1));
    expect(group.recv_object<Settings>(group.rank()) == settings_of(3));
  });
}

TEST_CASE("objects: of another size than the type's are a mismatch", "[group]") {
  const auto soon = [](const std::vector<Outcome>& outcomes) {
    for (const auto& outcome : outcomes) {
      CHECK(outcome.good);
      CHECK(outcome.seconds < kPromptSeconds);
    }
  };
  threads_on_each_backend(2, soon, [](Group& group) {
    if (group.rank() == 0)
      group.send_object(std::string("twelve bytes"), 1);
    else
      expect_other_type([&] { group.recv_object<double>(0); });
    // Only the two objects were at odds: the group is not.
    int number = group.rank() + 5;
    group.broadcast_object(number);
    expect(number == 5);
  });
  threads_on_each_backend(3, soon, [](Group& group) {
    if (group.rank() == 0) {
      std::string text = "seven b";
      group.broadcast_object(text);
    } else {
      std::vector<int> numbers;
      expect_other_type([&] { group.broadcast_object(numbers); });
      expect(numbers.empty());
    }
    group.barrier();
  });
  threads_on_each_backend(3, soon, [](Group& group) {
    if (group.rank() == 1)
      expect_other_type([&] { group.allgather_object(std::int64_t{1}); });
    else
      expect_other_type([&] { group.allgather_object(int{1}); });
    group.barrier();
  });
}

TEST_CASE("objects: scatter of too few objects is refused, before the others wait in vain", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    if (group.rank() == 0)
      expect_error(ErrorCode::invalid_argument, "one per rank", [&] { group.scatter_object(std::vector<int>{1}); });
    const std::vector<int> objects = group.rank() == 0 ? std::vector<int>{4, 5} : std::vector<int>();
    expect(group.scatter_object(objects) == 4 + group.rank());
    expect_error(ErrorCode::invalid_argument, "", [&] { group.gather_object(1, {.root = 2}); });
  });
}

}  // namespace
}  // namespace col::test

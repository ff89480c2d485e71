#include "conformance/group/fleet.hpp"

#include <fmt/format.h>

#include "support/ranks.hpp"

namespace col::test {
namespace {

constexpr int kUntouched = -99;

std::vector<int> block(int rank, std::size_t count, int salt) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = (rank + 1) * 1000 + static_cast<int>(i % 97) * 3 + salt;
  return values;
}

// The sum over the ranks before `last`.
std::vector<int> sum_before(int last, std::size_t count, int salt) {
  std::vector<int> sum(count);
  for (int r = 0; r < last; ++r) {
    const auto values = block(r, count, salt);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

void append(std::vector<int>& to, const std::vector<int>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

std::vector<int> part(const std::vector<int>& all, std::size_t first, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// What the launches have in common.
struct Launch {
  Group& group;
  Flight& flight;
  std::size_t count;
  int salt;
  int n = group.size();
  int me = group.rank();
  int root = salt % n;
  std::size_t ranks = static_cast<std::size_t>(n);
  bool is_root = me == root;

  void add(Work work) { flight.works.push_back(std::move(work)); }

  // Of the v-forms: rank r's block, with ranks that have none.
  std::size_t count_of(int rank) const {
    return (rank + salt) % 3 == 1 ? 0 : count + static_cast<std::size_t>(rank) * 2;
  }
  std::vector<std::size_t> counts() const {
    std::vector<std::size_t> all;
    for (int r = 0; r < n; ++r) all.push_back(count_of(r));
    return all;
  }
  // Every rank's block of its v-form count, one after the other.
  std::vector<int> all_blocks() const {
    std::vector<int> all;
    for (int r = 0; r < n; ++r) append(all, block(r, count_of(r), salt));
    return all;
  }
  std::vector<int> all_equal_blocks() const {
    std::vector<int> all;
    for (int r = 0; r < n; ++r) append(all, block(r, count, salt));
    return all;
  }
  int letter(int from, int to) const { return salt + from * 31 + to * 7; }

  void reductions(int kind) {
    flight.in = block(me, count, salt);
    flight.out.assign(count, kUntouched);
    const std::vector<int> untouched = flight.out;
    switch (kind) {
      case 0:
        flight.want = sum_before(n, count, salt);
        return add(group.iallreduce(flight.in, flight.out));
      case 1:
        flight.want = is_root ? sum_before(n, count, salt) : untouched;
        return add(group.ireduce(flight.in, flight.out, {.root = root}));
      case 2:
        flight.want = sum_before(me + 1, count, salt);
        return add(group.iscan(flight.in, flight.out));
      default:
        flight.want = me == 0 ? untouched : sum_before(me, count, salt);
        return add(group.iexscan(flight.in, flight.out));
    }
  }

  void reduce_scatters(bool v_form) {
    flight.in_counts = v_form ? counts() : std::vector<std::size_t>(ranks, count);
    std::size_t total = 0, first = 0;
    for (int r = 0; r < n; ++r) {
      if (r == me) first = total;
      total += flight.in_counts[static_cast<std::size_t>(r)];
    }
    const std::size_t own = flight.in_counts[static_cast<std::size_t>(me)];
    flight.in = block(me, total, salt);
    flight.out.resize(own);
    flight.want = part(sum_before(n, total, salt), first, own);
    add(v_form ? group.ireduce_scatterv(flight.in, flight.out, flight.in_counts)
               : group.ireduce_scatter(flight.in, flight.out));
  }

  void broadcasts() {
    flight.want = block(root, count, salt);
    flight.out = is_root ? flight.want : std::vector<int>(count);
    add(group.ibroadcast(flight.out, {.root = root}));
  }

  void gathers(int kind) {
    const bool v_form = kind == 8 || kind == 10;
    const bool has_result = kind <= 8 || is_root;
    flight.out_counts = v_form ? counts() : std::vector<std::size_t>();
    flight.in = block(me, v_form ? count_of(me) : count, salt);
    if (has_result) flight.want = v_form ? all_blocks() : all_equal_blocks();
    flight.out.resize(flight.want.size());
    const Options options{.root = root};
    switch (kind) {
      case 7:
        return add(group.iallgather(flight.in, flight.out));
      case 8:
        return add(group.iallgatherv(flight.in, flight.out, flight.out_counts));
      case 9:
        return add(group.igather(flight.in, flight.out, options));
      default:
        return add(group.igatherv(flight.in, flight.out, flight.out_counts, options));
    }
  }

  void scatters(bool v_form) {
    if (is_root) flight.in = v_form ? all_blocks() : all_equal_blocks();
    flight.in_counts = v_form && is_root ? counts() : std::vector<std::size_t>();
    flight.want = block(me, v_form ? count_of(me) : count, salt);
    flight.out.resize(flight.want.size());
    const Options options{.root = root};
    add(v_form ? group.iscatterv(flight.in, flight.in_counts, flight.out, options)
               : group.iscatter(flight.in, flight.out, options));
  }

  void alltoalls(bool v_form) {
    const auto between = [&](int from, int to) { return v_form ? count_of(from + 2 * to) : count; };
    for (int r = 0; r < n; ++r) {
      append(flight.in, block(me, between(me, r), letter(me, r)));
      append(flight.want, block(r, between(r, me), letter(r, me)));
      flight.in_counts.push_back(between(me, r));
      flight.out_counts.push_back(between(r, me));
    }
    flight.out.resize(flight.want.size());
    add(v_form ? group.ialltoallv(flight.in, flight.in_counts, flight.out, flight.out_counts)
               : group.ialltoall(flight.in, flight.out));
  }

  // To the next rank, from the one before: alone, any rank's by tag, or a batch with everybody, oneself included.
  void messages(int kind) {
    const int next = (me + 1) % n, previous = (me + n - 1) % n;
    const Options options{.tag = salt};
    if (kind == 18) return batch();
    flight.in = block(me, count, salt);
    flight.want = block(previous, count, salt);
    flight.out.resize(count);
    if (kind == 16) {
      add(group.isend(flight.in, next, options));
      add(group.irecv(flight.out, previous, options));
    } else {
      add(group.irecv_any(flight.out, options));
      add(group.isend(flight.in, next, options));
    }
  }

  void batch() {
    std::vector<Message> messages;
    for (int r = 0; r < n; ++r) {
      append(flight.in, block(me, count, letter(me, r)));
      append(flight.want, block(r, count, letter(r, me)));
    }
    flight.out.resize(flight.want.size());
    for (std::size_t r = 0; r < ranks; ++r) {
      messages.push_back(
          Message::recv(TensorView(flight.out).slice(r * count, count), static_cast<int>(r), salt + 1000));
      messages.push_back(
          Message::send(ConstTensorView(flight.in).slice(r * count, count), static_cast<int>(r), salt + 1000));
    }
    add(group.ibatch(messages));
  }
};

}  // namespace

std::unique_ptr<Flight> launch(Group& group, int kind, std::size_t count, int salt) {
  auto flight = std::make_unique<Flight>();
  flight->what = fmt::format("flight of kind {}, count {}, salt {}, on rank {}", kind, count, salt, group.rank());
  Launch launch{group, *flight, count, salt};
  if (kind <= 3)
    launch.reductions(kind);
  else if (kind <= 5)
    launch.reduce_scatters(kind == 5);
  else if (kind == 6)
    launch.broadcasts();
  else if (kind <= 10)
    launch.gathers(kind);
  else if (kind <= 12)
    launch.scatters(kind == 12);
  else if (kind <= 14)
    launch.alltoalls(kind == 14);
  else if (kind == 15)
    launch.add(group.ibarrier());
  else
    launch.messages(kind);
  return flight;
}

void expect_arrived(const Flight& flight) {
  expect(flight.out == flight.want, flight.what);
}

}  // namespace col::test

// Every asynchronous operation there is, with inputs that differ by rank, element and flight, and what it must give.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "support/collectives.hpp"

namespace col::test {

// One operation in flight. The buffers stay where they are until it is destroyed.
struct Flight {
  std::string what;
  std::vector<int> in, out, want;
  std::vector<std::size_t> in_counts, out_counts;
  std::vector<Work> works;
};

// How many kinds of flight there are: the collectives by their number, then three kinds of messages.
inline constexpr int kFlightKinds = 19, kAnySourceKind = 17;

inline int flight_value(int rank, std::size_t i, int salt) {
  return (rank + 1) * 1000 + static_cast<int>(i % 997) * 3 + salt;
}

inline void start_collective(Group& group, Flight& flight, Collective collective, std::size_t count, int salt) {
  const int n = group.size(), me = group.rank();
  // Of the v-forms: rank r's block, with ranks that have none.
  const auto count_of = [&](int r) { return (r + salt) % 3 == 1 ? 0 : count + static_cast<std::size_t>(r) * 2; };
  tools::ReferenceCall call{.collective = collective, .size = n, .root = salt % n, .count = count};
  if (row_of(collective).has_counts()) {
    const bool is_of_pairs = row_of(collective).counts == BlockCounts::pairs;
    for (int from = 0; from < (is_of_pairs ? n : 1); ++from) {
      for (int to = 0; to < n; ++to) call.counts.push_back(count_of(is_of_pairs ? from + 2 * to : to));
    }
  }
  auto sides = sides_of(call, me, -99, [&](int rank, std::size_t i) { return flight_value(rank, i, salt); });
  flight.in = std::move(sides.in);
  flight.out = std::move(sides.before);
  flight.want = std::move(sides.want);
  flight.in_counts = std::move(sides.lengths.in_counts);
  flight.out_counts = std::move(sides.lengths.out_counts);
  // What only the root needs, others may leave out.
  if (me != call.root && salt % 2 == 0) {
    if (row_of(collective).in_on_root) flight.in.clear();
    if (row_of(collective).out == Extent::blocks && row_of(collective).out_on_root) flight.out = flight.want = {};
    if (row_of(collective).counts == BlockCounts::root) flight.in_counts = flight.out_counts = {};
  }
  flight.works.push_back(call_by_name(group, {collective, flight.in, flight.out, flight.in_counts, flight.out_counts},
                                      {.root = call.root}, true));
}

// To every rank, oneself included, and from every one.
inline void start_batch(Group& group, Flight& flight, std::size_t count, int salt) {
  const int n = group.size(), me = group.rank();
  const auto sides = sides_of({.collective = Collective::alltoall, .size = n, .count = count}, me, -99,
                              [&](int rank, std::size_t i) { return flight_value(rank, i, salt); });
  flight.in = sides.in;
  flight.out = sides.before;
  flight.want = sides.want;
  std::vector<Message> messages;
  for (int r = 0; r < n; ++r) {
    const std::size_t begin = static_cast<std::size_t>(r) * count;
    messages.push_back(Message::recv(TensorView(flight.out).slice(begin, count), r, salt + 1000));
    messages.push_back(Message::send(ConstTensorView(flight.in).slice(begin, count), r, salt + 1000));
  }
  flight.works.push_back(group.ibatch(messages));
}

// To the next rank, from the one before, or from any by tag.
inline void start_messages(Group& group, Flight& flight, bool from_any, std::size_t count, int salt) {
  const int n = group.size(), me = group.rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
  const Options options{.tag = salt};
  flight.out.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    flight.in.push_back(flight_value(me, i, salt));
    flight.want.push_back(flight_value(previous, i, salt));
  }
  if (from_any) flight.works.push_back(group.irecv_any(flight.out, options));
  flight.works.push_back(group.isend(flight.in, next, options));
  if (!from_any) flight.works.push_back(group.irecv(flight.out, previous, options));
}

// Starts one of `kind` (0 to kFlightKinds - 1); all ranks name the same kind, count and salt.
inline std::unique_ptr<Flight> launch(Group& group, int kind, std::size_t count, int salt) {
  auto flight = std::make_unique<Flight>();
  flight->what = fmt::format("flight of kind {}, count {}, salt {}, on rank {}", kind, count, salt, group.rank());
  if (kind == kFlightKinds - 1)
    start_batch(group, *flight, count, salt);
  else if (kind >= kFlightKinds - 3)
    start_messages(group, *flight, kind == kAnySourceKind, count, salt);
  else
    start_collective(group, *flight, static_cast<Collective>(kind), count, salt);
  return flight;
}

// Throws when a flight whose works have ended did not give what it must.
inline void expect_arrived(const Flight& flight) {
  expect(flight.out == flight.want, flight.what);
}

// One after the other.
inline void fly_each_kind(Group& group, std::size_t count) {
  for (int kind = 0; kind < kFlightKinds; ++kind) {
    if (kind == kAnySourceKind && group.size() == 1) continue;  // from any rank, and none is there
    const auto flight = launch(group, kind, count, kind);
    for (Work work : flight->works) work.wait();
    expect_arrived(*flight);
  }
}

}  // namespace col::test

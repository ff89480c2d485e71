// Point to point: which message a receive gets, from which rank, and what never deadlocks.
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

// Case::variant of send_recv.
enum Matter : std::uint64_t {
  kOrder,     // messages of one tag arrive in the order in which they were sent, long and short ones
  kTags,      // tags do not disturb each other
  kToSelf,    // what is sent to oneself
  kOddCount,  // a receive for another count than was sent: mismatch
  kOddDType,  // for another type of the same size
  kMatterCount
};

constexpr std::size_t kMessages = 24;
// Tags that no other property uses.
constexpr int kFirstTag = 1 << 20;
constexpr int kTagsOfCase = 32;
// More than transports send at once.
constexpr std::size_t kLongCount = 30011;

using Data = std::vector<std::uint32_t>;

// ---- Cases

void add_messages(Draw& draw) {
  const auto add = [&](const std::string& backend, Primitive primitive, std::uint64_t variant, std::size_t count,
                       int fewest) {
    std::vector<int> ranks = draw.ranks();
    std::erase_if(ranks, [&](int n) { return n < fewest; });
    // Broken groups take their time to tell, and say the same on any number of ranks.
    const std::size_t sample = fewest > 1 ? (draw.quick() ? 1 : 2) : (draw.quick() ? 2 : ranks.size());
    for (std::size_t i = 0; i < std::min(sample, ranks.size()); ++i) {
      Case& c = draw.add(backend, primitive, variant, in_turn(ranks, draw.number()));
      c.count = count;
      c.dtype = DType::uint32;
      c.tag = kFirstTag + static_cast<int>(draw.number()) * kTagsOfCase;
    }
  };
  for (const std::string& backend : draw.backends()) {
    for (const std::size_t count : {std::size_t{1}, kLongCount}) {
      for (const std::uint64_t matter : {kOrder, kTags, kToSelf}) add(backend, Primitive::send_recv, matter, count, 1);
      for (const Primitive p : {Primitive::sendrecv, Primitive::recv_any, Primitive::batch})
        add(backend, p, 0, count, 1);
      for (const std::uint64_t matter : {kOddCount, kOddDType}) {
        if (tools::moves_device_memory(backend)) continue;  // NCCL does not look at what it moves
        if (!draw.quick() || (count == 1) == (matter == kOddDType))
          add(backend, Primitive::send_recv, matter, count, 2);
      }
    }
  }
}

// ---- Messages and their contents

// Message `number` from `sender`: what is in it, and how long it is where lengths differ.
Data message(const Case& c, int sender, std::size_t number, std::size_t count) {
  Data data(count);
  const std::uint64_t first = mix(c.seed, static_cast<std::uint64_t>(sender), number);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::uint32_t>(first + i * 0x9e3779b9U);
  return data;
}

// Mostly short, now and then empty, or as long as the case says.
std::size_t length_of(const Case& c, std::size_t number) {
  const std::uint64_t random = mix(c.seed, 60, number);
  return random % 8 == 0 ? c.count : random % 8 == 1 ? 0 : random / 8 % 300;
}

// "message 3 from rank 1: element 5 of 7 is 0x1, not 0x2"; empty when it is what it should be.
std::string compare(const Data& got, const Data& want, std::size_t number, int sender) {
  const auto [g, w] = std::mismatch(got.begin(), got.end(), want.begin());
  if (g == got.end()) return {};
  return fmt::format("message {} from rank {}: element {} of {} is {:#x}, not {:#x}", number, sender, g - got.begin(),
                     got.size(), *g, *w);
}

// Memory of one message, on the host or on a GPU as the case says.
class Parcel {
 public:
  // With what is sent in it, or with room for `count` numbers.
  Parcel(const Case& c, int rank, const Data& sent) { assign(c, rank, sent, Side::input); }
  Parcel(const Case& c, int rank, std::size_t count) { assign(c, rank, Data(count), Side::output); }

  TensorView view() const { return memory_.view(0, count(), DType::uint32); }
  operator TensorView() const { return view(); }       // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return view(); }  // NOLINT(google-explicit-constructor)
  std::size_t count() const { return memory_.size() / sizeof(Data::value_type); }
  Data content() const {
    const Bytes bytes = memory_.read(0, memory_.size());
    Data data(count());
    if (!data.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    return data;
  }

 private:
  void assign(const Case& c, int rank, const Data& data, Side side) {
    const auto bytes = std::as_bytes(std::span(data));
    memory_.assign({bytes.begin(), bytes.end()}, Placement::margins, sizeof(Data::value_type),
                   device_of(c, rank, side));
  }

  Memory memory_;
};
using Parcels = std::deque<Parcel>;  // which stay where they are

// Keeps the first of several problems.
void note(std::string& problem, std::string next) {
  if (problem.empty()) problem = std::move(next);
}

// ---- What is checked

// Every rank sends to the next but some, all at once. The receives are posted in the same order for one tag, and in an
// order of each rank's own where each message has a tag.
std::string burst(Group& group, const Case& c) {
  const bool one_tag = c.variant == kOrder;
  std::vector<std::size_t> order(kMessages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 own(mix(c.seed, 62, static_cast<std::uint64_t>(group.rank())));
  if (!one_tag) std::shuffle(order.begin(), order.end(), own);
  const int n = group.size();
  const int to = destination_of(c, group.rank(), n), from = source_of(c, group.rank(), n);
  const auto tag = [&](std::size_t i) { return c.tag + (one_tag ? 0 : static_cast<int>(i)); };
  Parcels sent, received;
  std::vector<Work> sends, receives;
  for (std::size_t i = 0; i < kMessages; ++i) {
    sent.emplace_back(c, group.rank(), message(c, group.rank(), i, length_of(c, i)));
    received.emplace_back(c, group.rank(), length_of(c, i));
  }
  for (std::size_t i = 0; i < kMessages; ++i) sends.push_back(group.isend(sent[i], to, {.tag = tag(i)}));
  const bool blocking = mix(c.seed, 61, static_cast<std::uint64_t>(group.rank())) % 2 == 0;
  for (const std::size_t i : order) {
    if (blocking)
      group.recv(received[i], from, {.tag = tag(i)});
    else
      receives.push_back(group.irecv(received[i], from, {.tag = tag(i)}));
  }
  for (Work& work : receives) work.wait();
  for (Work& work : sends) work.wait();
  std::string problem;
  for (std::size_t i = 0; i < kMessages; ++i)
    note(problem, compare(received[i].content(), message(c, from, i, length_of(c, i)), i, from));
  return problem;
}

std::string to_self(Group& group, const Case& c) {
  const int me = group.rank();
  const Options options{.tag = c.tag}, other{.tag = c.tag + 1};
  Parcels sent, received;
  for (std::size_t i = 0; i < 4; ++i) {
    sent.emplace_back(c, me, message(c, me, i, c.count));
    received.emplace_back(c, me, c.count);
  }
  std::string problem;
  try {
    group.recv(received[0], me, options);
    problem = "a recv of what was not sent to oneself returned";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
  }
  group.send(sent[0], me, options);
  Work early = group.irecv(received[3], me, other);
  group.isend(sent[1], me, options).wait();
  if (early.test()) note(problem, "a message to oneself was received under another tag");
  group.recv(received[0], me, options);
  group.irecv(received[1], me, options).wait();
  group.sendrecv(sent[2], me, received[2], me, options);
  group.send(sent[3], me, other);
  early.wait();
  if (early.source() != me) note(problem, fmt::format("a message to oneself came from rank {}", early.source()));
  for (std::size_t i = 0; i < sent.size(); ++i) note(problem, compare(received[i].content(), sent[i].content(), i, me));
  return problem;
}

// Several messages from every rank, which the root takes as they come. Messages of one rank keep their order.
std::string from_any(Group& group, const Case& c) {
  constexpr std::size_t kEach = 4;
  Parcels sent;
  std::vector<Work> sends;
  for (std::size_t i = 0; i < kEach; ++i) sent.emplace_back(c, group.rank(), message(c, group.rank(), i, c.count));
  for (const Parcel& data : sent) sends.push_back(group.isend(data, c.root, {.tag = c.tag}));
  std::string problem;
  if (group.rank() == c.root) {
    std::vector<std::size_t> next(static_cast<std::size_t>(group.size()), 0);
    for (std::size_t i = 0; i < kEach * next.size(); ++i) {
      const Parcel data(c, group.rank(), c.count);
      const int source = group.recv_any(data, {.tag = c.tag});
      if (source < 0 || source >= group.size() || next[static_cast<std::size_t>(source)] == kEach) {
        note(problem, fmt::format("recv_any says that rank {} sent one message too many", source));
        continue;
      }
      const std::size_t number = next[static_cast<std::size_t>(source)]++;
      note(problem, compare(data.content(), message(c, source, number, c.count), number, source));
    }
  }
  for (Work& work : sends) work.wait();
  group.barrier();  // no later message may meet these receives
  return problem;
}

// Several messages between any two ranks. Each rank lists them in its own order, except that messages between the same
// two ranks keep their order.
std::string crowd(Group& group, const Case& c) {
  constexpr std::size_t kEach = 3;
  const auto n = static_cast<std::size_t>(group.size());
  Parcels sent, received;
  std::vector<std::size_t> slots;  // peer * 2, and one more for receives; each as often as there are messages
  for (std::size_t peer = 0; peer < n; ++peer) {
    for (std::size_t i = 0; i < kEach; ++i) {
      const std::size_t count = i == 1 ? 0 : c.count;
      sent.emplace_back(c, group.rank(), message(c, group.rank(), peer * kEach + i, count));
      received.emplace_back(c, group.rank(), count);
      slots.insert(slots.end(), {2 * peer, 2 * peer + 1});
    }
  }
  std::mt19937_64 own(mix(c.seed, 63, static_cast<std::uint64_t>(group.rank())));
  std::shuffle(slots.begin(), slots.end(), own);
  std::vector<Message> messages;
  std::vector<std::size_t> listed(2 * n, 0);
  for (const std::size_t slot : slots) {
    const std::size_t at = slot / 2 * kEach + listed[slot]++;
    const int peer = static_cast<int>(slot / 2);
    messages.push_back(slot % 2 == 0 ? Message::send(sent[at], peer, c.tag) : Message::recv(received[at], peer, c.tag));
  }
  group.batch(messages);
  std::string problem;
  for (std::size_t i = 0; i < received.size(); ++i) {
    const int peer = static_cast<int>(i / kEach);
    const std::size_t number = static_cast<std::size_t>(group.rank()) * kEach + i % kEach;
    note(problem, compare(received[i].content(), message(c, peer, number, received[i].count()), i % kEach, peer));
  }
  return problem;
}

// The code of what `call` throws; nothing when it returns.
template <class Body>
std::optional<ErrorCode> thrown_by(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

std::string_view name_of(const std::optional<ErrorCode>& code) {
  return code ? to_string(*code) : "nothing";
}

// The first two ranks disagree about one message, in a group of theirs.
std::string disagree(Rank& rank, const Case& c) {
  const int both[] = {0, 1};
  Group group = rank.make_group(both);
  if (!group) return {};
  const Data before = message(c, group.rank(), 0, c.count + 1);
  const Parcel data(c, group.rank(), before);
  std::string problem;
  if (group.rank() == 0) {
    const auto code = thrown_by([&] { group.send(data.view().slice(0, c.count), 1); });
    if (code && code != ErrorCode::mismatch) problem = fmt::format("the sender gets {}, not mismatch", name_of(code));
    if (data.content() != before) note(problem, "what was sent has changed");
  } else {
    const bool odd_count = c.variant == kOddCount;
    TensorView view = data.view().slice(0, c.count + (odd_count ? 1 : 0));
    view.dtype = odd_count ? DType::uint32 : DType::float32;
    const auto code = thrown_by([&] { group.recv(view, 0); });
    if (code != ErrorCode::mismatch) problem = fmt::format("the receiver gets {}, not mismatch", name_of(code));
  }
  // The sender of a message that was taken off its hands may learn of it only now.
  const auto later = thrown_by([&] { group.barrier(); });
  if (later != ErrorCode::mismatch && later != ErrorCode::aborted)
    note(problem, fmt::format("the next call in the broken group throws {}", name_of(later)));
  return problem;
}

Finding run_messages(Rank& rank, const Case& c) {
  // Around a ring, with messages that no transport keeps until they are received.
  if (c.primitive == Primitive::sendrecv) return Finding::of(run_case(rank.group(), c));
  if (c.primitive == Primitive::recv_any) return Finding::of(from_any(rank.group(), c));
  if (c.primitive == Primitive::batch) return Finding::of(crowd(rank.group(), c));
  switch (c.variant) {
    case kOrder:
    case kTags:
      return Finding::of(burst(rank.group(), c));
    case kToSelf:
      return Finding::of(to_self(rank.group(), c));
    default:
      if (rank.size() < 2) return Finding::skip("it takes two ranks");
      return Finding::of(disagree(rank, c));
  }
}

}  // namespace

const Property kMessages =
    in_group("messages", "messages keep their order within a tag, do not deadlock, and are never cut off",
             &add_messages, &run_messages, OnGpus::buffers);

}  // namespace col::colcheck

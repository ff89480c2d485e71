#include "program.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "random.hpp"

namespace programs {
namespace {

// Of those that are no collectives.
constexpr std::array<std::string_view, kKinds - kFirstOther> kOtherNames = {"message",  "sendrecv", "batch",
                                                                            "recv_any", "objects",  "dup"};
constexpr std::array<std::string_view, kOperators> kOperatorNames = {
    "sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum", "first_nonzero"};

constexpr int kTagsOfMessages = 3;      // few, so that messages queue up behind one another
constexpr int kFirstTagOfBatches = 10;  // within one each has its own, so that any order of it means the same
constexpr int kFirstTagOfAny = 1'000;   // each its own: a recv_any takes whatever has its tag

std::size_t random_bytes(Random& random) {
  const int kind = random.below(100);
  if (kind < 10) return 0;
  if (kind < 25) return 8;
  if (kind < 55) return 3 + random.below(std::size_t{1'100});
  if (kind < 75) return 16'000 + random.below(std::size_t{2'000});
  if (kind < 85) return 60'000 + random.below(std::size_t{10'000});
  if (kind < 97) return 256'000 + random.below(std::size_t{20'000});
  if (kind < 99) return 1'000'000 + random.below(std::size_t{100'000});
  return 4 << 20;
}

std::vector<std::size_t> random_counts(Random& random, std::size_t ranks, std::size_t most) {
  std::vector<std::size_t> counts(ranks);
  for (std::size_t& count : counts) count = random.chance(25) ? 0 : random.below(most + 1);
  return counts;
}

void choose_transfers(Random& random, Event& event) {
  const int number = 1 + random.below(2 * event.size);
  for (int i = 0; i < number; ++i) {
    Transfer transfer{random.below(event.size), random.below(event.size), kFirstTagOfBatches + i};
    if (event.kind == Kind::recv_any) transfer = {transfer.from, event.root, kFirstTagOfAny + event.number};
    event.transfers.push_back(transfer);
  }
}

void choose_operator(Random& random, Event& event) {
  event.op = static_cast<Operator>(random.below(kOperators));
  const bool is_float = !row_of(event.dtype).is_integer();
  const bool is_bitwise = event.op == Operator::band || event.op == Operator::bor || event.op == Operator::bxor;
  const bool is_complex = row_of(event.dtype).kind == col::ElementKind::complex;
  const bool orders = event.op == Operator::min || event.op == Operator::max;
  if ((is_float && is_bitwise) || (is_complex && orders)) event.op = Operator::sum;
  if (event.op == Operator::first_nonzero) event.dtype = col::DType::int32;
  // Its inputs are multiples of the number of ranks, which 8 bits may not hold.
  if (event.op == Operator::avg && row_of(event.dtype).is_narrow() && col::size_of(event.dtype) == 1)
    event.op = Operator::sum;
  event.deterministic = random.chance(10);
}

Event random_event(Random& random, int number, std::size_t group, int size) {
  Event event{.number = number, .group = group, .size = size};
  event.seed = random.below(~std::size_t{0});
  event.kind = static_cast<Kind>(random.below(kKinds));
  // Messages between the collectives are what this is about.
  if (random.chance(20)) event.kind = static_cast<Kind>(static_cast<int>(Kind::message) + random.below(4));
  event.is_async = random.chance(65);
  event.in_place = random.chance(30);
  event.in_shared = random.chance(30);
  do event.dtype = static_cast<col::DType>(random.below(col::kDTypeCount));
  while (event.dtype == col::DType::boolean);  // holds none of the values here
  event.root = random.below(size);
  event.peer = random.below(size);
  event.tag = random.below(kTagsOfMessages);
  if (event.has_operator()) choose_operator(random, event);
  const auto ranks = static_cast<std::size_t>(size);
  event.count = random_bytes(random) / col::size_of(event.dtype);
  if (is_collective(event.kind)) {
    const col::CollectiveRow& row = row_of(collective_of(event.kind));
    if (row.has_blocks() && !row.has_counts()) event.count /= ranks;
    if (row.counts == col::BlockCounts::pairs)
      event.counts = random_counts(random, ranks * ranks, 2 * event.count / ranks / ranks);
    else if (row.has_counts())
      event.counts = random_counts(random, ranks, 2 * event.count / ranks);
  }
  if (event.kind == Kind::batch || event.kind == Kind::recv_any) choose_transfers(random, event);
  return event;
}

}  // namespace

bool Event::has_operator() const {
  return is_collective(kind) && row_of(collective_of(kind)).reduces();
}

bool Event::takes_part(int rank) const {
  if (kind == Kind::message) return rank == root || rank == peer;
  if (kind != Kind::batch && kind != Kind::recv_any) return true;
  return std::any_of(transfers.begin(), transfers.end(),
                     [&](const Transfer& transfer) { return transfer.from == rank || transfer.to == rank; });
}

std::string_view name_of(Kind kind) {
  return is_collective(kind) ? to_string(collective_of(kind))
                             : kOtherNames[static_cast<std::size_t>(kind) - kFirstOther];
}

std::string Event::text() const {
  std::string text = std::to_string(number) + ": " + (is_async ? "i" : "") + std::string(name_of(kind));
  if (kind != Kind::barrier) text += " of " + std::to_string(count) + " " + std::string(col::to_string(dtype));
  if (has_operator()) text += " by " + std::string(kOperatorNames[static_cast<std::size_t>(op)]);
  text += " in group " + std::to_string(group) + " (" + std::to_string(size) + " ranks), root " + std::to_string(root);
  if (kind == Kind::message || kind == Kind::sendrecv)
    text += ", peer " + std::to_string(peer) + ", tag " + std::to_string(tag);
  if (in_place) text += ", in place";
  if (deterministic) text += ", deterministic";
  if (in_shared && !is_async) text += ", in shared memory";
  if (is_dropped) text += ", dropped";
  for (const std::size_t& one : counts) text += (&one == counts.data() ? ", counts " : ",") + std::to_string(one);
  for (const Transfer& one : transfers)
    text += ", " + std::to_string(one.from) + "→" + std::to_string(one.to) + " tag " + std::to_string(one.tag);
  return text;
}

std::vector<Event> make_program(std::uint64_t seed, int events, const std::vector<int>& sizes, Extras extras) {
  Random random(seed);
  std::vector<std::size_t> groups;
  for (std::size_t group = 0; group < sizes.size(); ++group) {
    if (sizes[group] > 0) groups.push_back(group);
  }
  std::vector<Event> program;
  for (int number = 0; number < events; ++number) {
    const std::size_t group = random.pick(groups);
    program.push_back(random_event(random, number, group, sizes[group]));
    Event& event = program.back();
    if (event.kind == Kind::dup && !extras.making) event.kind = Kind::barrier;
    event.is_dropped = extras.dropping && event.is_async && event.kind < Kind::message && random.chance(15);
  }
  // What is dropped ends somewhere.
  for (const std::size_t group : groups) {
    if (!extras.dropping) break;
    const int number = static_cast<int>(program.size());
    program.push_back({.number = number, .kind = Kind::barrier, .group = group, .size = sizes[group]});
  }
  return program;
}

}  // namespace programs

// The same memory serves call after call, each with new data that is different on every rank, without any other
// synchronisation: catches what a call leaves in scratch, and reads or writes that happen after it has returned.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/plain_call.hpp"

namespace col::colcheck {
namespace {

constexpr std::uint64_t kRounds = 4;
constexpr std::byte kPattern{0x5c};

// Small, around what shared memory sends whole, and beyond.
constexpr std::array<std::size_t, 5> kBytes = {40, 8 << 10, (8 << 10) + 8, 20 << 10, 72 << 10};
// For a case, if every rank sends to every rank.
constexpr std::size_t kMostQuickBytes = std::size_t{1} << 18, kMostBytes = std::size_t{1} << 22;

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "refill");
  std::size_t turn = selection.seed % kBytes.size();
  const auto add = [&](const Form& form, bool in_place) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    const auto p = static_cast<std::size_t>(c->ranks);
    const std::size_t most = (draw.quick() ? kMostQuickBytes : kMostBytes) / (p * p);
    c->count = count_of_bytes(*c, std::min(kBytes[turn++ % kBytes.size()], most));
    c->in_place = in_place;
    if (c->primitive == Primitive::recv_any) c->tag = c->tag / 8 * 8;  // each round has one of its own
    all.push_back(*std::move(c));
  };
  for (const Form& form : draw.forms()) {
    if (draw.quick() && form.built_in != nullptr && selection.algorithms.empty()) continue;
    const int repeats = draw.times(form) * (draw.quick() ? 1 : 3);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      add(form, false);
      if (has_in_place(form.primitive)) add(form, true);
    }
  }
}

Case round_of(const Case& c, std::uint64_t round) {
  Case now = c;
  now.seed = mix(c.seed, 20, round);
  if (c.primitive == Primitive::recv_any) now.tag = c.tag + static_cast<int>(round);
  return now;
}

// The memory of one rank, which stays where it is.
class Rounds {
 public:
  Rounds(const Case& c, Group& group) : c_(c), group_(group) {
    std::size_t first = 0, second = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      parts_.push_back(part_of(round_of(c, round), group.rank(), group.size()));
      first = std::max({first, parts_.back().input.size(), c.in_place ? parts_.back().output.size() : 0});
      second = std::max(second, parts_.back().output.size());
    }
    const auto assign = [&](Memory& memory, std::size_t bytes, Side side) {
      memory.assign(Bytes(bytes), Placement::margins, size_of(c.dtype), device_of(c, group.rank(), side));
    };
    assign(first_, first, Side::input);
    assign(second_, second, Side::output);
  }

  std::string problem() {
    std::string first_problem;
    for (std::uint64_t round = 0; round < kRounds; ++round) {  // to the end: the other ranks may find nothing wrong
      const std::string problem = problem_of(round_of(c_, round), parts_[round]);
      if (!problem.empty() && first_problem.empty())
        first_problem = fmt::format("in round {} of {}, {}", round + 1, kRounds, problem);
    }
    return first_problem;
  }

 private:
  bool is_in_place() const {
    const bool rooted_elsewhere = is_rooted(c_.primitive) && group_.rank() != c_.root;
    return c_.in_place && (!rooted_elsewhere || c_.primitive == Primitive::reduce);
  }

  static void put(const Bytes& content, Bytes& memory, std::size_t offset) {
    std::copy(content.begin(), content.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  // Fills the memory again. This content must be in it until the call has changed it.
  static void fill(Memory& memory, const Bytes& content) {
    memory.write(0, content);
    memory.expect(0, content);
  }

  std::string problem_of(const Case& now, const Part& part) {
    const bool input_is_longer = part.input.size() >= part.output.size();
    const std::size_t in_at = is_in_place() && !input_is_longer ? part.own_offset : 0;
    const std::size_t out_at = is_in_place() && input_is_longer ? part.own_offset : 0;
    Bytes first(first_.size(), kPattern), second(second_.size(), kPattern);
    put(part.input, first, in_at);
    if (now.primitive == Primitive::broadcast && group_.rank() == now.root)
      put(part.output, is_in_place() ? first : second, 0);
    fill(first_, first);
    fill(second_, second);
    Memory& output = is_in_place() ? first_ : second_;
    if (part.writes) output.expect(out_at, part.output);

    const std::size_t size = size_of(now.dtype);
    const Views views{.in = first_.view(in_at, part.input.size() / size, now.dtype),
                      .out = output.view(out_at, part.output.size() / size, now.dtype),
                      .in_counts = part.in_counts,
                      .out_counts = part.out_counts};
    call_plainly(group_, now, views, options_of(now, group_.rank()));
    const std::string problem = first_.problem(size);
    if (!problem.empty()) return fmt::format("{}: {}", is_in_place() ? "the memory" : "the input", problem);
    const std::string other = second_.problem(size);
    return other.empty() ? "" : "the output: " + other;
  }

  const Case& c_;
  Group& group_;
  std::vector<Part> parts_;
  Memory first_, second_;  // input and output; in place, the first is both
};

Finding run(Rank& rank, const Case& c) {
  return Finding::of(Rounds(c, rank.group()).problem());
}

}  // namespace

const Property kRefill{"refill",
                       "buffers that are filled anew and used again give the new results, round after round",
                       Property::Kind::group,
                       &cases,
                       &run,
                       OnGpus::buffers};

}  // namespace col::colcheck

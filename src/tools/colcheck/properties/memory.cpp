// What a call leaves alone in memory, and what it leaves behind.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

// ---- untouched: What a call must leave alone is the same afterwards: inputs, what the root broadcasts, the outputs of
// ranks that get nothing, and the memory around. Independent of how Call checks it: whole buffers are hashed before and
// after.
//
// Ranks also pass nothing, null pointers and other types where the call does not look.

// What a rank passes where the call does not look.
enum class Ignored : std::uint64_t { present, absent, null, other };  // Case::variant
constexpr std::uint64_t kIgnoredCount = 4;

constexpr std::size_t kMargin = 96;

// Whether ranks that are not the root pass something that the call does not look at.
bool has_ignored_side(Primitive primitive) {
  return is_rooted(primitive) && primitive != Primitive::broadcast && primitive != Primitive::recv_any;
}

void add_untouched(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "untouched");
  const auto add = [&](const Form& form, std::uint64_t variant) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    c->variant = variant;
    if (mix(c->seed, 1) % 4 == 0) c->count = count_of_bytes(*c, 9 << 10);
    c->in_place = c->primitive == Primitive::reduce && mix(c->seed, 2) % 4 == 0;
    all.push_back(*std::move(c));
  };
  std::uint64_t turn = selection.seed;
  for (const Form& form : draw.forms()) {
    const bool all_variants = has_ignored_side(form.primitive) && (!draw.quick() || form.algorithm.empty());
    const auto repeats = static_cast<std::uint64_t>(draw.times(form)) * (draw.quick() ? 1 : 4);
    for (std::uint64_t i = 0; i < (all_variants ? kIgnoredCount : 1) * repeats; ++i)
      add(form, has_ignored_side(form.primitive) ? turn++ % kIgnoredCount : 0);
  }
}

// Different in every byte.
Bytes complement(Bytes bytes) {
  for (std::byte& byte : bytes) byte = ~byte;
  return bytes;
}

// A buffer in the middle of memory that is filled with noise.
class Buffer {
 public:
  Buffer(const Bytes& content, std::uint64_t seed, Device::Type device) : memory_(content.size() + 2 * kMargin) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(mix(seed, i));
    std::copy(content.begin(), content.end(), memory_.begin() + kMargin);
    if (device == Device::Type::cuda) {
      gpu_.emplace(memory_.size());
      gpu_->write(0, memory_);
    }
    whole_ = digest_of(memory_);
    around_ = hash_around();
  }
  TensorView view(std::size_t count, DType dtype) {
    std::byte* const all = gpu_ ? gpu_->data() : memory_.data();
    return {all + kMargin, count, dtype, gpu_ ? gpu_->device() : Device()};
  }
  // To be called before the questions below.
  void look() {
    if (gpu_) gpu_->read(0, memory_);
  }
  bool is_untouched() const { return digest_of(memory_) == whole_; }
  bool is_untouched_around() const { return hash_around() == around_; }
  std::size_t bytes() const { return memory_.size() - 2 * kMargin; }

 private:
  std::uint64_t hash_around() const {
    const std::span<const std::byte> all(memory_);
    return mix(digest_of(all.first(kMargin)), digest_of(all.last(kMargin)));
  }

  Bytes memory_;                          // on a GPU, what was there when it was last looked at
  std::optional<tools::GpuBuffer> gpu_;   // the buffer itself, on a GPU
  std::uint64_t whole_ = 0, around_ = 0;  // before the call
};

// The view that a rank passes where the call does not look.
TensorView ignored_view(const Case& c, Buffer& buffer) {
  switch (static_cast<Ignored>(c.variant % kIgnoredCount)) {
    case Ignored::absent:
      return {};
    case Ignored::null:
      return {nullptr, c.count + 1, c.dtype};
    case Ignored::other:
      return buffer.view(buffer.bytes(), DType::uint8);
    default:
      return buffer.view(buffer.bytes() / size_of(c.dtype), c.dtype);
  }
}

class UntouchedCall {
 public:
  UntouchedCall(const Case& c, int rank, int size)
      : c_(c),
        part_(part_of(c, rank, size)),
        is_root_(rank == c.root),
        in_(part_.input, mix(c.seed, 10, static_cast<std::uint64_t>(rank)), device_of(c, rank, Side::input)),
        out_(is_root_ && c.primitive == Primitive::broadcast ? part_.output : complement(part_.output),
             mix(c.seed, 11, static_cast<std::uint64_t>(rank)), device_of(c, rank, Side::output)) {}

  std::string problem_after_call(Group& group) {
    call_plainly(group, c_, views(), options_of(c_, group.rank()));
    in_.look();
    out_.look();
    if (!in_place_on_root() && !in_.is_untouched()) return "the input, or memory beside it, was changed";
    if (!in_.is_untouched_around()) return "the memory around the input was changed";
    if (!out_.is_untouched_around()) return "the memory around the output was changed";
    if (keeps_output() && !out_.is_untouched()) return "the output, which is not this rank's to get, was changed";
    // Nothing that has been left undone may pass for left alone.
    const bool written = in_place_on_root() || keeps_output() || part_.output.empty() || !out_.is_untouched();
    return written ? "" : "the output is what it was before the call";
  }

 private:
  bool in_place_on_root() const { return c_.in_place && is_root_; }
  bool keeps_output() const {
    return !part_.writes || c_.in_place || (c_.primitive == Primitive::broadcast && is_root_);
  }

  Views views() {
    const std::size_t size = size_of(c_.dtype);
    Views views{.in = in_.view(in_.bytes() / size, c_.dtype),
                .out = out_.view(out_.bytes() / size, c_.dtype),
                .in_counts = part_.in_counts,
                .out_counts = part_.out_counts};
    if (has_ignored_side(c_.primitive) && !is_root_) {
      if (!part_.reads) views.in = ignored_view(c_, in_);
      if (!part_.writes) views.out = ignored_view(c_, out_);
    }
    if (c_.in_place) views.out = in_.view(in_.bytes() / size, c_.dtype);
    return views;
  }

  const Case& c_;
  const Part part_;
  const bool is_root_;
  Buffer in_, out_;
};

Finding run_untouched(Rank& rank, const Case& c) {
  return Finding::of(UntouchedCall(c, rank.rank(), rank.size()).problem_after_call(rank.group()));
}

// ---- refill: The same memory serves call after call, each with new data that is different on every rank, without any
// other synchronisation: catches what a call leaves in scratch, and reads or writes that happen after it has returned.

constexpr std::uint64_t kRounds = 4;
constexpr std::byte kPattern{0x5c};

// Small, around what shared memory sends whole, and beyond.
constexpr std::array<std::size_t, 5> kBytes = {40, 8 << 10, (8 << 10) + 8, 20 << 10, 72 << 10};
// For a case, if every rank sends to every rank.
constexpr std::size_t kMostQuickMemory = std::size_t{1} << 18, kMostMemory = std::size_t{1} << 22;

void add_refill(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "refill");
  std::size_t turn = selection.seed % kBytes.size();
  const auto add = [&](const Form& form, bool in_place) {
    auto c = draw.next(form);
    if (!c || c->primitive == Primitive::barrier) return;
    const auto p = static_cast<std::size_t>(c->ranks);
    const std::size_t most = (draw.quick() ? kMostQuickMemory : kMostMemory) / (p * p);
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

Finding run_refill(Rank& rank, const Case& c) {
  return Finding::of(Rounds(c, rank.group()).problem());
}

}  // namespace

const Property kUntouched{
    "untouched",           "inputs, and outputs of ranks that get nothing, are the same after a call",
    Property::Kind::group, &add_untouched,
    &run_untouched,        OnGpus::buffers};
const Property kRefill{"refill",
                       "buffers that are filled anew and used again give the new results, round after round",
                       Property::Kind::group,
                       &add_refill,
                       &run_refill,
                       OnGpus::buffers};

}  // namespace col::colcheck

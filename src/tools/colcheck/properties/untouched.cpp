// What a call must leave alone is the same afterwards: inputs, what the root broadcasts, the outputs of ranks that get
// nothing, and the memory around. Independent of how Call checks it: whole buffers are hashed before and after.
//
// Ranks also pass nothing, null pointers and other types where the call does not look.
#include <optional>
#include <span>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/plain_call.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

// What a rank passes where the call does not look.
enum class Ignored : std::uint64_t { present, absent, null, other };  // Case::variant
constexpr std::uint64_t kIgnoredCount = 4;

constexpr std::size_t kMargin = 96;

// Whether ranks that are not the root pass something that the call does not look at.
bool has_ignored_side(Primitive primitive) {
  return is_rooted(primitive) && primitive != Primitive::broadcast && primitive != Primitive::recv_any;
}

void cases(const Selection& selection, std::vector<Case>& all) {
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

// FNV-1a.
std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return hash;
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
    whole_ = hash_of(memory_);
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
  bool is_untouched() const { return hash_of(memory_) == whole_; }
  bool is_untouched_around() const { return hash_around() == around_; }
  std::size_t bytes() const { return memory_.size() - 2 * kMargin; }

 private:
  std::uint64_t hash_around() const {
    const std::span<const std::byte> all(memory_);
    return mix(hash_of(all.first(kMargin)), hash_of(all.last(kMargin)));
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

class Check {
 public:
  Check(const Case& c, int rank, int size)
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

Finding run(Rank& rank, const Case& c) {
  return Finding::of(Check(c, rank.rank(), rank.size()).problem_after_call(rank.group()));
}

}  // namespace

const Property kUntouched{"untouched",
                          "inputs, and outputs of ranks that get nothing, are the same after a call",
                          Property::Kind::group,
                          &cases,
                          &run,
                          OnGpus::buffers};

}  // namespace col::colcheck

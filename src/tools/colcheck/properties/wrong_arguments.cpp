// Wrong calls are refused as invalid_argument with a message on the rank that makes them, before any data moves: the
// memory is as it was, and the group goes on. Where only the root could know, the root alone makes the call.
#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/refusal.hpp"

namespace col::colcheck {
namespace {

enum class Mistake : std::uint64_t {
  root_too_large,
  root_negative,
  null_input,
  null_output,
  output_too_long,
  output_too_short,
  uneven_blocks,
  too_few_counts,
  counts_of_other_sum,
  endless_count,
  other_dtype,
  unknown_dtype,
  bits_of_floats,
  broken_scale_of_integers,
  unknown_algorithm,
  unknown_parameter,
  malformed_algorithm,
  order_not_kept,
  other_group,
  peer_too_large,
  peer_negative,
  never_sent,  // a blocking receive from oneself
  short_list,
};

// The arguments of a rank's call, for a mistake to be made in.
struct Arguments {
  const Case& c;
  int rank, size;
  Options options = {};
  Views views = {};
  std::vector<std::size_t> counts = {};  // of a v-form

  void set_dtypes(DType dtype) { views.in.dtype = views.out.dtype = dtype; }
};

// ---- Where a mistake can be made, in a group of this many ranks

bool is_collective(Primitive primitive, int /*ranks*/) {
  return collective_of(primitive).has_value();
}
bool has_root(Primitive primitive, int ranks) {
  return is_collective(primitive, ranks) && is_rooted(primitive);
}
bool has_input(Primitive primitive, int /*ranks*/) {
  return primitive != Primitive::broadcast && primitive != Primitive::barrier;
}
bool has_output(Primitive primitive, int /*ranks*/) {
  return primitive != Primitive::barrier && primitive != Primitive::recv_any;
}
bool has_both(Primitive primitive, int ranks) {
  return has_input(primitive, ranks) && is_collective(primitive, ranks);
}
bool has_counts(Primitive primitive, int /*ranks*/) {
  return is_v_form(primitive);
}
bool reduces(Primitive primitive, int /*ranks*/) {
  return is_reduction(primitive);
}
bool is_alltoall(Primitive primitive, int ranks) {
  return primitive == Primitive::alltoall && ranks > 1;
}
bool moves(Primitive primitive, int /*ranks*/) {
  return primitive != Primitive::barrier;
}
// A world of one runs no algorithm, and does not look.
bool has_algorithm(Primitive primitive, int ranks) {
  return is_collective(primitive, ranks) && ranks > 1;
}
// An algorithm that changes the order of the ranks; null if there is none.
const Algorithm* unordered_algorithm(Primitive primitive) {
  const auto collective = collective_of(primitive);
  if (!collective || !is_reduction(primitive)) return nullptr;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == *collective && algorithm.order == FoldOrder::any) return &algorithm;
  }
  return nullptr;
}

bool has_unordered(Primitive primitive, int ranks) {
  return ranks > 1 && unordered_algorithm(primitive) != nullptr;
}
bool is_any(Primitive /*primitive*/, int /*ranks*/) {
  return true;
}
bool has_peer(Primitive primitive, int ranks) {
  return !is_collective(primitive, ranks) && primitive != Primitive::recv_any;
}
bool has_list(Primitive primitive, int /*ranks*/) {
  return primitive == Primitive::allgather || primitive == Primitive::gather || primitive == Primitive::scatter ||
         primitive == Primitive::reduce_scatter || primitive == Primitive::alltoall;
}

// ---- The mistakes

struct MistakeRow {
  Mistake mistake;
  bool (*is_possible)(Primitive primitive, int ranks);
  // Makes it, unless it is in the call itself: WrongCall::call().
  void (*make)(Arguments& a);
};
void make_nothing(Arguments& /*a*/) {}

// In the order of the enumeration.
constexpr MistakeRow kMistakes[] = {
    {Mistake::root_too_large, &has_root, [](Arguments& a) { a.options.root = a.size; }},
    {Mistake::root_negative, &has_root, [](Arguments& a) { a.options.root = -1; }},
    {Mistake::null_input, &has_input, [](Arguments& a) { a.views.in.data = nullptr; }},
    {Mistake::null_output, &has_output, [](Arguments& a) { a.views.out.data = nullptr; }},
    {Mistake::output_too_long, &has_both, [](Arguments& a) { a.views.out.count += 1; }},
    {Mistake::output_too_short, &has_both, [](Arguments& a) { a.views.out.count -= 1; }},
    {Mistake::uneven_blocks, &is_alltoall,
     [](Arguments& a) {
       a.views.in.count += 1;
       a.views.out.count += 1;
     }},
    {Mistake::too_few_counts, &has_counts, [](Arguments& a) { a.counts.pop_back(); }},
    {Mistake::counts_of_other_sum, &has_counts,
     [](Arguments& a) { a.counts[static_cast<std::size_t>((a.rank + 1) % a.size)] += 1; }},
    {Mistake::endless_count, &has_counts,
     [](Arguments& a) { a.counts.back() = std::numeric_limits<std::size_t>::max(); }},
    {Mistake::other_dtype, &has_both,
     [](Arguments& a) { a.views.out.dtype = a.c.dtype == DType::int32 ? DType::float32 : DType::int32; }},
    {Mistake::unknown_dtype, &moves, [](Arguments& a) { a.set_dtypes(static_cast<DType>(77)); }},
    {Mistake::bits_of_floats, &reduces,
     [](Arguments& a) {
       a.set_dtypes(mix(a.c.seed, 2) % 2 == 0 ? DType::float32 : DType::bfloat16);
       a.options.op = ReduceOp::bxor;
     }},
    {Mistake::broken_scale_of_integers, &reduces,
     [](Arguments& a) {
       a.set_dtypes(DType::int32);
       a.options.op = Op::premul_sum(0.5);
     }},
    {Mistake::unknown_algorithm, &has_algorithm, [](Arguments& a) { a.options.algorithm = "no_such_algorithm"; }},
    {Mistake::unknown_parameter, &has_algorithm,
     [](Arguments& a) { a.options.algorithm = "linear:no_such_parameter=3"; }},
    {Mistake::malformed_algorithm, &has_algorithm, [](Arguments& a) { a.options.algorithm = "linear:radix="; }},
    {Mistake::order_not_kept, &has_unordered,
     [](Arguments& a) {
       a.options.algorithm = unordered_algorithm(a.c.primitive)->name;
       a.options.deterministic = true;
     }},
    {Mistake::other_group, &is_any, [](Arguments& a) { a.options.group = "no_such_group"; }},
    {Mistake::peer_too_large, &has_peer, &make_nothing},
    {Mistake::peer_negative, &has_peer, &make_nothing},
    {Mistake::never_sent, &has_peer, &make_nothing},
    {Mistake::short_list, &has_list, &make_nothing},
};
constexpr std::uint64_t kMistakeCount = std::size(kMistakes);
static_assert(std::ranges::is_sorted(kMistakes, {}, &MistakeRow::mistake));

// Whether ranks other than the root would find nothing wrong with the same call.
bool only_root_can_know(Mistake mistake, Primitive primitive) {
  return is_rooted(primitive) && mistake != Mistake::root_too_large && mistake != Mistake::root_negative;
}

// ---- The property

// In a quick run of every second primitive; of the others with the next mistake.
std::vector<Form> forms_for(const Draw& draw, const Selection& selection, std::uint64_t variant) {
  std::vector<Form> possible;
  for (const Form& form : draw.forms()) {
    if (!form.algorithm.empty() && selection.algorithms.empty()) continue;  // nothing gets that far
    if (kMistakes[variant].is_possible(form.primitive, draw.ranks().back())) possible.push_back(form);
  }
  if (!draw.quick() || possible.size() < 2) return possible;
  std::vector<Form> chosen;
  for (std::size_t i = variant % 2; i < possible.size(); i += 2) chosen.push_back(possible[i]);
  return chosen;
}

void add_wrong_arguments(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "wrong_arguments");
  const int repeats = draw.quick() ? 1 : 4;
  for (std::uint64_t variant = 0; variant < kMistakeCount; ++variant) {
    for (const Form& form : forms_for(draw, selection, variant)) {
      for (int repeat = 0; repeat < repeats; ++repeat) {
        auto c = draw.next(form);
        // Not every mistake can be made alone.
        if (c && !kMistakes[variant].is_possible(form.primitive, c->ranks)) c = draw.next(form, draw.ranks().back());
        if (!c) continue;
        c->variant = variant;
        if (c->primitive != Primitive::barrier) c->count = 1 + mix(c->seed, 1) % 300;
        all.push_back(*std::move(c));
      }
    }
  }
}

// A call of a rank that has input and output, with one mistake.
class WrongCall {
 public:
  WrongCall(Rank& rank, const Case& c)
      : rank_(rank),
        c_(c),
        mistake_(static_cast<Mistake>(c.variant)),
        size_(static_cast<std::size_t>(rank.size())),
        a_{c, rank.rank(), rank.size(), options_of(c, rank.rank())} {
    // Of the longest types, and with room for an element too many.
    const Sides sides = sides_of(c, rank.size());
    in_memory_.assign((sides.in + size_ + 1) * sizeof(double), std::byte{0x11});
    out_memory_.assign((sides.out + size_ + 1) * sizeof(double), std::byte{0x77});
    a_.options.timeout = kRefusedTimeout;
    a_.views = {.in = {in_memory_.data(), sides.in, c.dtype}, .out = {out_memory_.data(), sides.out, c.dtype}};
    a_.counts.assign(size_, c.count);
    kMistakes[c.variant].make(a_);
    a_.views.in_counts = a_.counts;
    a_.views.out_counts = a_.counts;
  }

  std::string problem() {
    const Bytes in_before = in_memory_, out_before = out_memory_;
    std::string problem = refusal_problem([this] { call(); });
    if (problem.empty()) problem = difference("the input of the refused call", in_memory_, in_before);
    if (problem.empty()) problem = difference("the output of the refused call", out_memory_, out_before);
    return problem;
  }

 private:
  void call() {
    if (mistake_ == Mistake::short_list) return call_with_list();
    if (mistake_ == Mistake::never_sent) return rank_.group().recv(a_.views.out, rank_.rank(), a_.options);
    if (mistake_ == Mistake::peer_too_large) return call_with_peer(rank_.size());
    if (mistake_ == Mistake::peer_negative) return call_with_peer(-1);
    if (collective_of(c_.primitive)) return call_plainly(rank_.group(), c_, a_.views, a_.options);
    call_message();
  }

  // With one message, so that a refusal leaves nothing for another rank to wait for.
  void call_message() {
    Group& group = rank_.group();
    const int me = rank_.rank();
    if (c_.primitive == Primitive::recv_any) return group.send(a_.views.in, me, a_.options);
    if (c_.primitive == Primitive::sendrecv) return group.sendrecv(a_.views.in, me, a_.views.out, me, a_.options);
    if (c_.primitive == Primitive::batch) {
      const std::array messages = {Message::send(a_.views.in, me, c_.tag), Message::recv(a_.views.out, me, c_.tag)};
      return group.batch(messages, a_.options);
    }
    if (mistake_ == Mistake::null_output) return group.recv(a_.views.out, me, a_.options);
    group.send(a_.views.in, me, a_.options);
  }

  void call_with_peer(int peer) {
    Group& group = rank_.group();
    const bool sending = mix(c_.seed, 2) % 2 == 0;
    const int me = rank_.rank();
    if (c_.primitive == Primitive::sendrecv)
      return group.sendrecv(a_.views.in, sending ? peer : me, a_.views.out, sending ? me : peer, a_.options);
    if (c_.primitive == Primitive::batch) {
      const Message message = sending ? Message::send(a_.views.in, peer) : Message::recv(a_.views.out, peer);
      return group.batch(std::span(&message, 1), a_.options);
    }
    sending ? group.send(a_.views.in, peer, a_.options) : group.recv(a_.views.out, peer, a_.options);
  }

  // The free functions, with one tensor too few or too many.
  void call_with_list() {
    const Context::Scope scope(rank_.context());
    const Group group = rank_.group();
    a_.options.group = group.name();
    const std::size_t length = mix(c_.seed, 2) % 2 == 0 ? size_ - 1 : size_ + 1;
    std::vector<TensorView> outputs(length);  // of no elements: they share no memory
    for (TensorView& output : outputs) output = {out_memory_.data(), 0, c_.dtype};
    const std::vector<ConstTensorView> inputs(length, ConstTensorView(in_memory_.data(), 0, c_.dtype));
    const TensorView out(out_memory_.data(), 0, c_.dtype);
    const ConstTensorView in(in_memory_.data(), 0, c_.dtype);
    if (c_.primitive == Primitive::allgather) return col::allgather(outputs, in, a_.options);
    if (c_.primitive == Primitive::gather) return col::gather(outputs, in, a_.options);
    if (c_.primitive == Primitive::scatter) return col::scatter(out, inputs, a_.options);
    if (c_.primitive == Primitive::reduce_scatter) return col::reducescatter(out, inputs, a_.options);
    col::alltoall(outputs, inputs, a_.options);
  }

  Rank& rank_;
  const Case& c_;
  const Mistake mistake_;
  const std::size_t size_;
  Arguments a_;
  Bytes in_memory_, out_memory_;
};

Finding run_wrong_arguments(Rank& rank, const Case& c) {
  const auto mistake = static_cast<Mistake>(c.variant);
  if (c.variant >= kMistakeCount || !kMistakes[c.variant].is_possible(c.primitive, c.ranks) ||
      (c.count == 0 && c.primitive != Primitive::barrier))
    return Finding::skip("with so few ranks or elements there is no such mistake to make");
  const bool calls = !only_root_can_know(mistake, c.primitive) || rank.rank() == c.root;
  std::string problem = calls ? WrongCall(rank, c).problem() : "";
  return Finding::of(problem_or_next(std::move(problem), rank.group(), c));
}

}  // namespace

const Property kWrongArguments{"wrong_arguments",
                               "wrong calls are invalid_argument, and leave the group as it was",
                               Property::Kind::group,
                               &add_wrong_arguments,
                               &run_wrong_arguments,
                               OnGpus::nothing,
                               true};

}  // namespace col::colcheck

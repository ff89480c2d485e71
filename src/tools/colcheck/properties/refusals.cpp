// Wrong calls are refused as invalid_argument with a message on the rank that makes them, before any data moves: the
// memory is as it was, and the group goes on. Where only the root could know, or has both buffers, the root alone makes
// the call.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// A call that is not refused, and that nobody else makes, ends soon.
constexpr Duration kRefusedTimeout = std::chrono::seconds(2);

// One call of a rank that has input and output, for a mistake to be made in.
struct Attempt {
  Attempt(Rank& the_rank, const Case& the_case)
      : rank(the_rank), c(the_case), me(rank.rank()), size(rank.size()), options(options_of(c, me)) {
    // With room for the longest types of the mistakes, for an element too many, and on both sides of an overlap.
    const auto n = static_cast<std::size_t>(size);
    memory.resize(3 * (in.count + out.count + n + 2) * std::max(element, sizeof(double)));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 167 + i / 251);
    options.timeout = kRefusedTimeout;
    counts.assign(n, c.count);
    in.data = memory.data();
    out.data = memory.data() + (in.count + n + 1) * std::max(element, sizeof(double));
  }

  TensorView part(std::size_t from, std::size_t count) { return {memory.data() + from * element, count, c.dtype}; }
  void set_dtypes(DType dtype) { in.dtype = out.dtype = dtype; }
  void place(std::size_t in_at, std::size_t out_at) {
    in.data = memory.data() + in_at;
    out.data = memory.data() + out_at;
  }
  // The shorter of the two begins in the middle of the longer one: at the block of a rank, where that has blocks, and
  // so many elements from it.
  void place_shorter(int block, int elements) {
    const std::size_t middle = in.bytes() + out.bytes(), first = in.count == out.count ? 0 : c.count;
    const std::size_t at =
        middle + static_cast<std::size_t>(block) * first * element + static_cast<std::size_t>(elements) * element;
    in.bytes() > out.bytes() ? place(middle, at) : place(at, middle);
  }

  Rank& rank;
  const Case& c;
  const int me, size;
  const std::size_t element = size_of(c.dtype);
  Options options;
  Bytes memory;
  TensorView in{nullptr, sides_of(c, size).in, c.dtype}, out{nullptr, sides_of(c, size).out, c.dtype};
  std::vector<std::size_t> counts;  // of a v-form
};

// ---- Where a mistake can be made, in a group of this many ranks

bool is_any(Primitive /*primitive*/, int /*ranks*/) {
  return true;
}
bool moves(Primitive primitive, int /*ranks*/) {
  return primitive != Primitive::barrier;
}
bool has_root(Primitive primitive, int /*ranks*/) {
  return collective_of(primitive) && is_rooted(primitive);
}
bool has_input(Primitive primitive, int ranks) {
  return primitive != Primitive::broadcast && moves(primitive, ranks);
}
bool has_output(Primitive primitive, int ranks) {
  return primitive != Primitive::recv_any && moves(primitive, ranks);
}
bool has_both(Primitive primitive, int ranks) {
  return collective_of(primitive) && has_input(primitive, ranks);
}
bool may_overlap(Primitive primitive, int ranks) {
  return has_both(primitive, ranks) || primitive == Primitive::sendrecv;
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
bool is_batch(Primitive primitive, int /*ranks*/) {
  return primitive == Primitive::batch;
}
// A world of one runs no algorithm, and does not look.
bool has_algorithm(Primitive primitive, int ranks) {
  return collective_of(primitive) && ranks > 1;
}
bool has_peer(Primitive primitive, int /*ranks*/) {
  return !collective_of(primitive) && primitive != Primitive::recv_any;
}
// As a free function, with one tensor for each rank.
bool has_output_list(Primitive primitive, int ranks) {
  return ranks > 1 &&
         (primitive == Primitive::allgather || primitive == Primitive::gather || primitive == Primitive::alltoall);
}
bool has_list(Primitive primitive, int /*ranks*/) {
  return has_output_list(primitive, 2) || primitive == Primitive::scatter || primitive == Primitive::reduce_scatter;
}
// An algorithm that changes the order of the ranks; null if there is none.
const Algorithm* unordered_algorithm(Primitive primitive) {
  const auto all = algorithms();
  const auto found = std::ranges::find_if(all, [&](const Algorithm& algorithm) {
    return is_reduction(primitive) && algorithm.collective == *collective_of(primitive) &&
           algorithm.order == FoldOrder::any;
  });
  return found == all.end() ? nullptr : &*found;
}
bool has_unordered(Primitive primitive, int ranks) {
  return ranks > 1 && unordered_algorithm(primitive) != nullptr;
}

// ---- Calls. Messages go to oneself, so that a refusal leaves nothing for another rank to wait for.

void call_usually(Attempt& a) {
  Group& group = a.rank.group();
  if (collective_of(a.c.primitive)) return call_plainly(group, a.c, {a.in, a.out, a.counts, a.counts}, a.options);
  if (a.c.primitive == Primitive::sendrecv) return group.sendrecv(a.in, a.me, a.out, a.me, a.options);
  if (a.c.primitive == Primitive::batch) {
    const std::array messages = {Message::send(a.in, a.me, a.c.tag), Message::recv(a.out, a.me, a.c.tag)};
    return group.batch(messages, a.options);
  }
  a.out.data == nullptr ? group.recv(a.out, a.me, a.options) : group.send(a.in, a.me, a.options);
}

void call_with_peer(Attempt& a, int peer) {
  Group& group = a.rank.group();
  const bool sending = mix(a.c.seed, 2) % 2 == 0;
  if (a.c.primitive == Primitive::sendrecv)
    return group.sendrecv(a.in, sending ? peer : a.me, a.out, sending ? a.me : peer, a.options);
  if (a.c.primitive == Primitive::batch) {
    const Message message = sending ? Message::send(a.in, peer) : Message::recv(a.out, peer);
    return group.batch(std::span(&message, 1), a.options);
  }
  sending ? group.send(a.in, peer, a.options) : group.recv(a.out, peer, a.options);
}

// The free functions; those with one input, or one output, get one of so many elements.
void call_with_lists(Attempt& a, std::size_t count, const std::vector<ConstTensorView>& inputs,
                     const std::vector<TensorView>& outputs) {
  const TensorView one = a.part(0, count);
  const Context::Scope scope(a.rank.context());
  const Group group = a.rank.group();
  a.options.group = group.name();
  if (a.c.primitive == Primitive::allgather) return col::allgather(outputs, one, a.options);
  if (a.c.primitive == Primitive::gather) return col::gather(outputs, one, a.options);
  if (a.c.primitive == Primitive::scatter) return col::scatter(one, inputs, a.options);
  if (a.c.primitive == Primitive::reduce_scatter) return col::reducescatter(one, inputs, a.options);
  col::alltoall(outputs, inputs, a.options);
}

// With tensors of no elements, which share no memory.
void call_with_other_length(Attempt& a) {
  const std::size_t length = a.counts.size() + 1 - mix(a.c.seed, 2) % 2 * 2;
  call_with_lists(a, 0, std::vector<ConstTensorView>(length, a.part(0, 0)),
                  std::vector<TensorView>(length, a.part(0, 0)));
}

// The last output begins so many elements into the first.
void call_with_shared_output(Attempt& a, std::size_t elements) {
  std::vector<TensorView> outputs;
  for (std::size_t r = 0; r < a.counts.size(); ++r) outputs.push_back(a.part((r + 1) * (a.c.count + 1), a.c.count));
  outputs.back() = a.part(a.c.count + 1 + elements, a.c.count);
  call_with_lists(a, a.c.count, std::vector<ConstTensorView>(outputs.size(), a.part(0, a.c.count)), outputs);
}

// A received message shares memory with another one, or with one that is sent.
void call_with_shared_message(Attempt& a) {
  const TensorView one = a.part(0, a.c.count), two = a.part(1, a.c.count), apart = a.part(a.c.count + 1, a.c.count);
  std::vector<Message> messages = {Message::send(one, a.me, a.c.tag), Message::recv(two, a.me, a.c.tag)};
  if (mix(a.c.seed, 2) % 2 == 0)
    messages = {Message::send(apart, a.me, a.c.tag), Message::send(apart, a.me, a.c.tag),
                Message::recv(one, a.me, a.c.tag), Message::recv(two, a.me, a.c.tag)};
  a.rank.group().batch(messages, a.options);
}

// ---- The mistakes

struct Mistake {
  std::string_view what;
  bool (*is_possible)(Primitive primitive, int ranks);
  void (*make)(Attempt& a);
  void (*call)(Attempt& a) = &call_usually;
};
void make_none(Attempt& /*a*/) {}  // it is in the call itself

// The rows of `wrong_arguments`, and then those of `aliasing`. Case::variant is the number.
constexpr std::array kMistakes = {
    Mistake{"a root too large", &has_root, [](Attempt& a) { a.options.root = a.size; }},
    Mistake{"a negative root", &has_root, [](Attempt& a) { a.options.root = -1; }},
    Mistake{"no input", &has_input, [](Attempt& a) { a.in.data = nullptr; }},
    Mistake{"no output", &has_output, [](Attempt& a) { a.out.data = nullptr; }},
    Mistake{"an output too long", &has_both, [](Attempt& a) { ++a.out.count; }},
    Mistake{"an output too short", &has_both, [](Attempt& a) { --a.out.count; }},
    Mistake{"uneven blocks", &is_alltoall, [](Attempt& a) { ++a.in.count, ++a.out.count; }},
    Mistake{"too few counts", &has_counts, [](Attempt& a) { a.counts.pop_back(); }},
    Mistake{"counts of another sum", &has_counts,
            [](Attempt& a) { ++a.counts[static_cast<std::size_t>((a.me + 1) % a.size)]; }},
    Mistake{"an endless count", &has_counts,
            [](Attempt& a) { a.counts.back() = std::numeric_limits<std::size_t>::max(); }},
    Mistake{"another dtype", &has_both,
            [](Attempt& a) { a.out.dtype = a.c.dtype == DType::int32 ? DType::float32 : DType::int32; }},
    Mistake{"an unknown dtype", &moves, [](Attempt& a) { a.set_dtypes(static_cast<DType>(77)); }},
    Mistake{"bits of floats", &reduces,
            [](Attempt& a) {
              a.set_dtypes(mix(a.c.seed, 2) % 2 == 0 ? DType::float32 : DType::bfloat16);
              a.options.op = ReduceOp::bxor;
            }},
    Mistake{"a broken scale of integers", &reduces,
            [](Attempt& a) {
              a.set_dtypes(DType::int32);
              a.options.op = Op::premul_sum(0.5);
            }},
    Mistake{"an unknown algorithm", &has_algorithm, [](Attempt& a) { a.options.algorithm = "no_such_algorithm"; }},
    Mistake{"an unknown parameter", &has_algorithm,
            [](Attempt& a) { a.options.algorithm = "linear:no_such_parameter=3"; }},
    Mistake{"a malformed algorithm", &has_algorithm, [](Attempt& a) { a.options.algorithm = "linear:radix="; }},
    Mistake{"an order that is not kept", &has_unordered,
            [](Attempt& a) {
              a.options.algorithm = unordered_algorithm(a.c.primitive)->name;
              a.options.deterministic = true;
            }},
    Mistake{"another group", &is_any, [](Attempt& a) { a.options.group = "no_such_group"; }},
    Mistake{"a peer too large", &has_peer, &make_none, [](Attempt& a) { call_with_peer(a, a.size); }},
    Mistake{"a negative peer", &has_peer, &make_none, [](Attempt& a) { call_with_peer(a, -1); }},
    Mistake{"a receive of what one never sent oneself", &has_peer, &make_none,
            [](Attempt& a) { a.rank.group().recv(a.out, a.me, a.options); }},
    Mistake{"a list of another length", &has_list, &make_none, &call_with_other_length},

    Mistake{"the shorter one after its place", &may_overlap, [](Attempt& a) { a.place_shorter(a.me, 1); }},
    Mistake{"the shorter one before its place", &may_overlap,
            [](Attempt& a) {
              a.in.count == a.out.count ? a.place_shorter(0, -1) : a.place_shorter((a.me + 1) % a.size, 0);
            }},
    Mistake{"an output from the last byte of the input on", &may_overlap,
            [](Attempt& a) { a.place(a.out.bytes(), a.out.bytes() + a.in.bytes() - 1); }},
    Mistake{"an input from the last byte of the output on", &may_overlap,
            [](Attempt& a) { a.place(a.out.bytes(), 1); }},
    Mistake{"two outputs of a list with a common part", &has_output_list, &make_none,
            [](Attempt& a) { call_with_shared_output(a, 1); }},
    Mistake{"one output twice in a list", &has_output_list, &make_none,
            [](Attempt& a) { call_with_shared_output(a, 0); }},
    Mistake{"messages with common memory", &is_batch, &make_none, &call_with_shared_message},
};
constexpr std::size_t kFirstOverlap = 23;
static_assert(kMistakes[kFirstOverlap].is_possible == &may_overlap);

// ---- The properties

// In a quick run, wrong arguments of every second primitive; of the others with the next mistake.
void add_mistakes(Draw& draw, std::size_t first, std::size_t end) {
  for (std::size_t variant = first; variant < end; ++variant) {
    const auto is_possible = kMistakes[variant].is_possible;
    std::size_t turn = variant;
    for (const Form& form : draw.forms()) {
      if (!form.algorithm.empty() && draw.selection().algorithms.empty()) continue;  // nothing gets that far
      if (!is_possible(form.primitive, draw.ranks().back())) continue;
      if (draw.quick() && variant < kFirstOverlap && turn++ % 2 != 0) continue;
      for (int repeat = 0; repeat < (draw.quick() ? 1 : 6); ++repeat) {
        // Not every mistake can be made alone.
        Case* const c = draw.add(form, is_possible(form.primitive, 1) ? 1 : 2);
        if (c == nullptr) continue;
        c->variant = variant;
        if (c->primitive != Primitive::barrier) c->count = 2 + mix(c->seed, 1) % 600;
      }
    }
  }
}

void add_wrong_arguments(Draw& draw) {
  add_mistakes(draw, 0, kFirstOverlap);
}

void add_aliasing(Draw& draw) {
  add_mistakes(draw, kFirstOverlap, kMistakes.size());
}

// Empty if the call is refused in the right way, and has touched nothing.
std::string problem_with_refusal(Rank& rank, const Case& c) {
  Attempt attempt(rank, c);
  const Bytes before = attempt.memory;
  std::string problem = "the call had to be refused as invalid_argument, but was not";
  kMistakes[c.variant].make(attempt);
  try {
    kMistakes[c.variant].call(attempt);
  } catch (const Error& error) {
    problem = error.message().empty() ? "the call was refused without a message" : "";
    if (error.code() != ErrorCode::invalid_argument)
      problem = std::string("the call had to be refused as invalid_argument, but: ") + error.what();
  }
  if (problem.empty() && attempt.memory != before) problem = "the refused call has changed the memory";
  return problem.empty() ? "" : fmt::format("{}: {}", kMistakes[c.variant].what, problem);
}

Finding run_refused(Rank& rank, const Case& c) {
  const bool moves_little = c.count < 2 && c.primitive != Primitive::barrier;
  if (c.variant >= kMistakes.size() || moves_little || !kMistakes[c.variant].is_possible(c.primitive, c.ranks))
    return Finding::skip("with so few ranks or elements there is no such mistake to make");
  const bool all_know = !is_rooted(c.primitive) || kMistakes[c.variant].is_possible == &has_root;
  std::string problem = all_know || rank.rank() == c.root ? problem_with_refusal(rank, c) : "";
  try {
    const std::string next = run_case(rank.group(), c);  // which is legal
    if (problem.empty() && !next.empty()) problem = "after a refused call, " + next;
  } catch (const Error& error) {  // the group cannot be used any more
    throw std::runtime_error(problem.empty() ? std::string("after a refused call, ") + error.what() : problem);
  }
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kAliasing =
    in_group("aliasing", "overlaps other than in place are refused before any data moves", &add_aliasing, &run_refused);
const Property kWrongArguments =
    in_group("wrong_arguments", "wrong calls are invalid_argument, and leave the group as it was", &add_wrong_arguments,
             &run_refused, OnGpus::nothing, 1, true);

}  // namespace col::colcheck

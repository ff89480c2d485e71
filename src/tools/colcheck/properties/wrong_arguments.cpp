// Wrong calls are refused as invalid_argument with a message on the rank that makes them, before any data moves: the
// memory is as it was, and the group goes on. Where only the root could know, the root alone makes the call.
#include <array>
#include <limits>
#include <vector>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/mistake.hpp"
#include "colcheck/properties/plain_call.hpp"
#include "colcheck/properties/refusal.hpp"

namespace col::colcheck {
namespace {

// In a quick run of every second primitive; of the others with the next mistake.
std::vector<Form> forms_for(const Draw& draw, const Selection& selection, std::uint64_t variant) {
  std::vector<Form> possible;
  for (const Form& form : draw.forms()) {
    if (!form.algorithm.empty() && selection.algorithms.empty()) continue;  // nothing gets that far
    if (is_possible(static_cast<Mistake>(variant), form.primitive, draw.ranks().back())) possible.push_back(form);
  }
  if (!draw.quick() || possible.size() < 2) return possible;
  std::vector<Form> chosen;
  for (std::size_t i = variant % 2; i < possible.size(); i += 2) chosen.push_back(possible[i]);
  return chosen;
}

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "wrong_arguments");
  const int repeats = draw.quick() ? 1 : 4;
  for (std::uint64_t variant = 0; variant < kMistakeCount; ++variant) {
    for (const Form& form : forms_for(draw, selection, variant)) {
      for (int repeat = 0; repeat < repeats; ++repeat) {
        auto c = draw.next(form);
        // Not every mistake can be made alone.
        if (c && !is_possible(static_cast<Mistake>(variant), form.primitive, c->ranks))
          c = draw.next(form, draw.ranks().back());
        if (!c) continue;
        c->variant = variant;
        if (c->primitive != Primitive::barrier) c->count = 1 + mix(c->seed, 1) % 300;
        all.push_back(*std::move(c));
      }
    }
  }
}

// A legal call of a rank that has input and output, for a mistake to be made in.
class WrongCall {
 public:
  WrongCall(Rank& rank, const Case& c)
      : rank_(rank),
        c_(c),
        mistake_(static_cast<Mistake>(c.variant)),
        size_(static_cast<std::size_t>(rank.size())),
        options_(options_of(c, rank.rank())),
        counts_(size_, c.count) {
    // Of the longest types, and with room for an element too many.
    const Sides sides = sides_of(c, rank.size());
    in_memory_.assign((sides.in + size_ + 1) * sizeof(double), std::byte{0x11});
    out_memory_.assign((sides.out + size_ + 1) * sizeof(double), std::byte{0x77});
    views_ = {.in = {in_memory_.data(), sides.in, c.dtype}, .out = {out_memory_.data(), sides.out, c.dtype}};
    options_.timeout = kRefusedTimeout;
    make_mistake();
    views_.in_counts = counts_;
    views_.out_counts = counts_;
  }

  std::string problem() {
    const Bytes in_before = in_memory_, out_before = out_memory_;
    std::string problem = refusal_problem([this] { call(); });
    if (problem.empty()) problem = difference("the input of the refused call", in_memory_, in_before);
    if (problem.empty()) problem = difference("the output of the refused call", out_memory_, out_before);
    return problem;
  }

 private:
  void set_dtypes(DType dtype) { views_.in.dtype = views_.out.dtype = dtype; }

  void make_mistake() {
    switch (mistake_) {
      case Mistake::root_too_large:
        options_.root = rank_.size();
        break;
      case Mistake::root_negative:
        options_.root = -1;
        break;
      case Mistake::null_input:
        views_.in.data = nullptr;
        break;
      case Mistake::null_output:
        views_.out.data = nullptr;
        break;
      case Mistake::output_too_long:
        views_.out.count += 1;
        break;
      case Mistake::output_too_short:
        views_.out.count -= 1;
        break;
      case Mistake::uneven_blocks:
        views_.in.count += 1;
        views_.out.count += 1;
        break;
      case Mistake::too_few_counts:
        counts_.pop_back();
        break;
      case Mistake::counts_of_other_sum:
        counts_[(static_cast<std::size_t>(rank_.rank()) + 1) % size_] += 1;
        break;
      case Mistake::endless_count:
        counts_.back() = std::numeric_limits<std::size_t>::max();
        break;
      case Mistake::other_dtype:
        views_.out.dtype = c_.dtype == DType::int32 ? DType::float32 : DType::int32;
        break;
      case Mistake::unknown_dtype:
        set_dtypes(static_cast<DType>(77));
        break;
      default:
        make_mistake_in_options();
    }
  }

  void make_mistake_in_options() {
    switch (mistake_) {
      case Mistake::bits_of_floats:
        set_dtypes(mix(c_.seed, 2) % 2 == 0 ? DType::float32 : DType::bfloat16);
        options_.op = ReduceOp::bxor;
        break;
      case Mistake::broken_scale_of_integers:
        set_dtypes(DType::int32);
        options_.op = Op::premul_sum(0.5);
        break;
      case Mistake::unknown_algorithm:
        options_.algorithm = "no_such_algorithm";
        break;
      case Mistake::unknown_parameter:
        options_.algorithm = "linear:no_such_parameter=3";
        break;
      case Mistake::malformed_algorithm:
        options_.algorithm = "linear:radix=";
        break;
      case Mistake::order_not_kept:
        options_.algorithm = unordered_algorithm(c_.primitive)->name;
        options_.deterministic = true;
        break;
      case Mistake::other_group:
        options_.group = "no_such_group";
        break;
      default:  // in the call itself
        break;
    }
  }

  void call() {
    if (mistake_ == Mistake::short_list) return call_with_list();
    if (mistake_ == Mistake::never_sent) return rank_.group().recv(views_.out, rank_.rank(), options_);
    if (mistake_ == Mistake::peer_too_large) return call_with_peer(rank_.size());
    if (mistake_ == Mistake::peer_negative) return call_with_peer(-1);
    if (collective_of(c_.primitive)) return call_plainly(rank_.group(), c_, views_, options_);
    call_message();
  }

  // With one message, so that a refusal leaves nothing for another rank to wait for.
  void call_message() {
    Group& group = rank_.group();
    const int me = rank_.rank();
    if (c_.primitive == Primitive::recv_any) return group.send(views_.in, me, options_);
    if (c_.primitive == Primitive::sendrecv) return group.sendrecv(views_.in, me, views_.out, me, options_);
    if (c_.primitive == Primitive::batch) {
      const std::array messages = {Message::send(views_.in, me, c_.tag), Message::recv(views_.out, me, c_.tag)};
      return group.batch(messages, options_);
    }
    if (mistake_ == Mistake::null_output) return group.recv(views_.out, me, options_);
    group.send(views_.in, me, options_);
  }

  void call_with_peer(int peer) {
    Group& group = rank_.group();
    const bool sending = mix(c_.seed, 2) % 2 == 0;
    const int me = rank_.rank();
    if (c_.primitive == Primitive::sendrecv)
      return group.sendrecv(views_.in, sending ? peer : me, views_.out, sending ? me : peer, options_);
    if (c_.primitive == Primitive::batch) {
      const Message message = sending ? Message::send(views_.in, peer) : Message::recv(views_.out, peer);
      return group.batch(std::span(&message, 1), options_);
    }
    sending ? group.send(views_.in, peer, options_) : group.recv(views_.out, peer, options_);
  }

  // The free functions, with one tensor too few or too many.
  void call_with_list() {
    const Context::Scope scope(rank_.context());
    const Group group = rank_.group();
    options_.group = group.name();
    const std::size_t length = mix(c_.seed, 2) % 2 == 0 ? size_ - 1 : size_ + 1;
    std::vector<TensorView> outputs(length);  // of no elements: they share no memory
    for (TensorView& output : outputs) output = {out_memory_.data(), 0, c_.dtype};
    const std::vector<ConstTensorView> inputs(length, ConstTensorView(in_memory_.data(), 0, c_.dtype));
    const TensorView out(out_memory_.data(), 0, c_.dtype);
    const ConstTensorView in(in_memory_.data(), 0, c_.dtype);
    if (c_.primitive == Primitive::allgather) return col::allgather(outputs, in, options_);
    if (c_.primitive == Primitive::gather) return col::gather(outputs, in, options_);
    if (c_.primitive == Primitive::scatter) return col::scatter(out, inputs, options_);
    if (c_.primitive == Primitive::reduce_scatter) return col::reducescatter(out, inputs, options_);
    col::alltoall(outputs, inputs, options_);
  }

  Rank& rank_;
  const Case& c_;
  const Mistake mistake_;
  const std::size_t size_;
  Options options_;
  std::vector<std::size_t> counts_;
  Bytes in_memory_, out_memory_;
  Views views_;
};

Finding run(Rank& rank, const Case& c) {
  const auto mistake = static_cast<Mistake>(c.variant);
  if (!is_possible(mistake, c.primitive, c.ranks) || (c.count == 0 && c.primitive != Primitive::barrier))
    return Finding::skip("with so few ranks or elements there is no such mistake to make");
  const bool calls = !only_root_can_know(mistake, c.primitive) || rank.rank() == c.root;
  std::string problem = calls ? WrongCall(rank, c).problem() : "";
  return Finding::of(problem_or_next(std::move(problem), rank.group(), c));
}

}  // namespace

const Property kWrongArguments{"wrong_arguments", "wrong calls are invalid_argument, and leave the group as it was",
                               Property::Kind::group, &cases, &run};

}  // namespace col::colcheck

#include "colcheck/properties/program.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <col/select.hpp>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

// One call in so many is longer than what transports send at once.
constexpr std::uint64_t kLongEvery = 16;
constexpr std::size_t kLongProgramCount = 9001;
// Tags of receives from any rank. They are above those of other properties, and differ by more than the length of a
// program.
constexpr int kFirstProgramTag = 1 << 24;
constexpr int kTagsOfProgram = 1 << 10;

// Whether the algorithm, which may have parameters, can serve the call.
bool can_serve(const std::string& algorithm, const Case& c, int ranks) {
  const std::string name = AlgorithmSpec::parse(algorithm).name;
  const auto collective = collective_of(c.primitive);
  if (!collective) return false;
  if (find_algorithm(*collective, name) == nullptr) {  // a backend's own
    const Form form{.primitive = c.primitive, .algorithm = name, .backend = c.backend};
    return !c.asynchronous && takes(form, c.op) && takes(form, c.dtype);
  }
  const auto able = candidates(c, ranks);
  return std::any_of(able.begin(), able.end(), [&](const Algorithm* a) { return a->name == name; });
}

}  // namespace

// ---- Program

Program::Program(ProgramStyle style, int ranks, std::uint64_t seed)
    : style_(std::move(style)),
      ranks_(ranks),
      random_(seed),
      first_tag_(kFirstProgramTag + static_cast<int>(mix(seed) % kTagsOfProgram) * kTagsOfProgram) {}

Primitive Program::draw_primitive() {
  const auto fits = [&](Primitive p) {
    if (p == Primitive::recv_any && !style_.any_source) return false;
    return style_.blocking || has_i_form(p);
  };
  if (below(2) == 0 && fits(style_.about)) return style_.about;
  for (;;) {
    const auto primitive = static_cast<Primitive>(below(kPrimitiveCount));
    if (fits(primitive)) return primitive;
  }
}

void Program::draw_algorithm(Case& c) {
  const auto able = candidates(c, ranks_);
  const bool named = below(2) == 0;
  const std::uint64_t which = random_();
  if (named && !able.empty()) c.algorithm = able[which % able.size()]->name;
  if (style_.algorithm.empty() || c.primitive != style_.about) return;
  c.algorithm.clear();
  if (can_serve(style_.algorithm, c, ranks_)) c.algorithm = style_.algorithm;
}

Case Program::next() {
  Case c;
  c.backend = style_.backend;
  c.devices = style_.devices;
  c.ranks = ranks_;
  c.seed = random_();
  c.primitive = draw_primitive();
  c.dtype = static_cast<DType>(below(kDTypeCount));
  do {
    c.op = static_cast<Operator>(below(kOperatorCount));
  } while (!is_defined(c.op, c.dtype) || !has_one_result(c));
  const auto count_class = static_cast<int>(below(kCountClasses));
  const bool is_long = below(kLongEvery) == 0;
  if (c.primitive != Primitive::barrier) c.count = is_long ? kLongProgramCount : count_of(count_class, ranks_, c.seed);
  if (is_rooted(c.primitive)) c.root = static_cast<int>(below(static_cast<std::uint64_t>(ranks_)));
  c.in_place = has_in_place(c.primitive) && below(2) == 0;
  c.asynchronous = has_i_form(c.primitive) && style_.asynchronous && (!style_.blocking || below(3) > 0);
  draw_algorithm(c);
  c.tag = tag_of(c.primitive, number_) + (c.primitive == Primitive::recv_any ? first_tag_ : 0);
  ++number_;
  return c;
}

// ---- Calls in flight

void OpenCalls::start(const Group& group, const Case& c) {
  open_.push_back({std::make_unique<Call>(group, c), c});
  open_.back().call->start();
  if (!c.asynchronous) end(open_.size() - 1);
}

void OpenCalls::end(std::size_t index) {
  Open ended = std::move(open_[index]);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  ended.call->wait();
  const std::string problem = ended.call->problem();
  if (!problem.empty() && problem_.empty()) problem_ = fmt::format("{}: {}", describe(ended.c), problem);
}

void OpenCalls::end_all(std::mt19937_64& random) {
  while (!open_.empty()) end(random() % open_.size());
}

std::string run_program(const Group& group, const ProgramStyle& style, std::uint64_t seed, std::size_t length) {
  Program program(style, group.size(), seed);
  std::mt19937_64 own(mix(seed, 1, static_cast<std::uint64_t>(group.rank())));
  OpenCalls calls;
  for (std::size_t i = 0; i < length; ++i) {
    calls.start(group, program.next());
    while (!calls.empty() && own() % 3 == 0) calls.end(own() % calls.size());
  }
  calls.end_all(own);
  return calls.problem();
}

}  // namespace col::colcheck

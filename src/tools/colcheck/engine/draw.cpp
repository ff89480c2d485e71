#include "colcheck/engine/draw.hpp"

#include <algorithm>
#include <utility>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

constexpr int kMostQuickRanks = 5;
constexpr std::uint64_t kDrawn = 0xd7a3;
constexpr std::size_t kMostBytesInSegments = 20 * 64;

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  for (const char character : text) number = mix(number, static_cast<unsigned char>(character));
  return number;
}

}  // namespace

std::vector<Case> cases_of(const Property& property, const Selection& selection) {
  std::vector<Case> cases;
  Draw draw(property, selection, cases);
  property.add(draw);
  return cases;
}

Draw::Draw(const Property& property, const Selection& selection, std::vector<Case>& cases)
    : property_(property), selection_(selection), cases_(cases), seed_(mix(selection.seed, number_of(property.name))) {
  for (Form& form : colcheck::forms_of(selection)) {
    if (!backends_of(form).empty()) forms_.push_back(std::move(form));
  }
  for (const int ranks : selection.ranks) {
    const bool few = ranks <= kMostQuickRanks || ranks_.empty() || ranks_.back() == 1;
    if (ranks >= property.fewest_ranks && (!quick() || few)) ranks_.push_back(ranks);
  }
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i] = mix(seed_, i) % 64;
}

std::vector<Form> Draw::forms_of(Primitive primitive) const {
  std::vector<Form> found = forms_;
  std::erase_if(found, [&](const Form& form) { return form.primitive != primitive; });
  return found;
}

int Draw::times(const Form& form, int full) const {
  return (collective_of(form.primitive) ? 1 : static_cast<int>(selection_.backends.size())) * (quick() ? 1 : full);
}

std::vector<std::string> Draw::backends_of(const Form& form) const {
  if (!form.is_native()) return selection_.backends;
  const auto& all = selection_.backends;
  if (std::find(all.begin(), all.end(), form.backend) == all.end()) return {};
  return {form.backend};
}

std::vector<int> Draw::served(const Form& form, int fewest) const {
  std::vector<int> found = ranks_;
  std::erase_if(found, [&](int ranks) { return ranks < fewest || !serves(form, ranks); });
  if (found.size() > 1 && found.front() == 1 && !form.algorithm.empty()) found.erase(found.begin());
  return found;
}

Case* Draw::add(const Form& form, int fewest) {
  const std::vector<int> ranks = served(form, fewest);
  if (ranks.empty()) return nullptr;
  const std::uint64_t turn = turns_[static_cast<std::size_t>(form.primitive)];
  return &add_on(form, ranks[turn / backends_of(form).size() % ranks.size()]);
}

Case& Draw::add_on(const Form& form, int ranks) {
  const std::uint64_t turn = turns_[static_cast<std::size_t>(form.primitive)]++;
  Case& c = add(in_turn(backends_of(form), turn), form.primitive, 0, ranks);
  c.algorithm = form.algorithm;
  if (c.primitive == Primitive::barrier) return c;
  const auto drawn = [&](std::uint64_t what, int values) {
    return static_cast<int>(mix(c.seed, kDrawn, what) % static_cast<std::uint64_t>(values));
  };
  c.dtype = static_cast<DType>(drawn(1, kDTypeCount));
  if (!takes(form, c.dtype)) c.dtype = DType::int32;
  const std::size_t count = count_of(1 + drawn(2, kCountClasses - 1), ranks, c.seed);
  c.count = count_of_bytes(c, count * size_of(c.dtype));
  for (std::uint64_t i = 3; is_reduction(c.primitive); ++i) {
    c.op = static_cast<Operator>(drawn(i, kOperatorCount));
    if (is_defined(c.op, c.dtype) && takes(form, c.op)) break;
  }
  // What a faster rank sends from another case must not be taken for a message of this one.
  if (c.primitive == Primitive::recv_any) c.tag = 1000 + drawn(100, 1 << 30);
  return c;
}

std::vector<std::string> Draw::backends() const {
  return ranks_.empty() || !selection_.wants_algorithm("") ? std::vector<std::string>() : selection_.backends;
}

Case Draw::next(const std::string& backend, Primitive primitive, std::uint64_t variant, int ranks) {
  Case c;
  c.property = property_.name;
  c.backend = backend;
  c.ranks = ranks > 0 ? ranks : in_turn(ranks_, number_);
  c.primitive = primitive;
  c.variant = variant;
  c.seed = mix(seed_, ++number_);
  if (is_rooted(primitive)) c.root = static_cast<int>(mix(c.seed, kDrawn) % static_cast<std::uint64_t>(c.ranks));
  return c;
}

std::size_t count_of_bytes(const Case& c, std::size_t bytes) {
  if (c.algorithm.find("segment") != std::string::npos) bytes = std::min(bytes, kMostBytesInSegments);
  return bytes / size_of(c.dtype);
}

Finding run_whole_case(Rank& rank, const Case& c) {
  return Finding::of(run_case(rank.group(), c));
}

void set_dtype(Case& c, DType dtype) {
  c.dtype = dtype;
  if (!is_defined(c.op, dtype)) c.op = dtype == DType::boolean ? Operator::bor : Operator::sum;
}

}  // namespace col::colcheck

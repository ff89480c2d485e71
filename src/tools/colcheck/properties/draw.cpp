#include "colcheck/properties/draw.hpp"

#include <algorithm>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

constexpr int kMostQuickRanks = 5;
constexpr std::size_t kMostBytesInSegments = 20 * 64;

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  for (const char character : text) number = mix(number, static_cast<unsigned char>(character));
  return number;
}

}  // namespace

Draw::Draw(const Selection& selection, std::string_view property)
    : selection_(selection), property_(property), seed_(mix(selection.seed, number_of(property))) {
  for (Form& form : colcheck::forms_of(selection)) {
    if (!backends_of(form).empty()) forms_.push_back(std::move(form));
  }
  for (const int ranks : selection.ranks) {
    const bool few = ranks <= kMostQuickRanks || ranks_.empty() || ranks_.back() == 1;
    if (!quick() || few) ranks_.push_back(ranks);
  }
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i] = mix(seed_, i) % 64;
}

std::vector<Form> Draw::forms_of(Primitive primitive) const {
  std::vector<Form> found;
  std::copy_if(forms_.begin(), forms_.end(), std::back_inserter(found),
               [&](const Form& form) { return form.primitive == primitive; });
  return found;
}

int Draw::times(const Form& form) const {
  return collective_of(form.primitive) ? 1 : static_cast<int>(selection_.backends.size());
}

std::vector<std::string> Draw::backends_of(const Form& form) const {
  if (!form.is_native()) return selection_.backends;
  const auto& all = selection_.backends;
  if (std::find(all.begin(), all.end(), form.backend) == all.end()) return {};
  return {form.backend};
}

std::vector<int> Draw::served(const Form& form) const {
  std::vector<int> found;
  for (const int ranks : ranks_) {
    if (serves(form, ranks)) found.push_back(ranks);
  }
  if (found.size() > 1 && found.front() == 1 && !form.algorithm.empty()) found.erase(found.begin());
  return found;
}

std::optional<Case> Draw::next(const Form& form) {
  const std::vector<int> ranks = served(form);
  if (ranks.empty()) return std::nullopt;
  const std::vector<std::string> backends = backends_of(form);
  const std::uint64_t turn = turns_[static_cast<std::size_t>(form.primitive)]++;
  return draw(form, ranks[turn / backends.size() % ranks.size()], backends[turn % backends.size()]);
}

Case Draw::next(const Form& form, int ranks) {
  const std::vector<std::string> backends = backends_of(form);
  const std::uint64_t turn = turns_[static_cast<std::size_t>(form.primitive)]++;
  return draw(form, ranks, backends[turn % backends.size()]);
}

Case Draw::draw(const Form& form, int ranks, const std::string& backend) {
  Case c;
  c.property = property_;
  c.seed = mix(seed_, ++number_);
  const auto drawn = [&](std::uint64_t what, int values) {
    return static_cast<int>(mix(c.seed, 0xd7a3, what) % static_cast<std::uint64_t>(values));
  };
  c.backend = backend;
  c.ranks = ranks;
  c.primitive = form.primitive;
  c.algorithm = form.algorithm;
  if (is_rooted(c.primitive)) c.root = drawn(0, ranks);
  if (c.primitive == Primitive::barrier) return c;
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

#include "colcheck/selftest/agreement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/primitive.hpp"
#include "colcheck/selftest/arithmetic.hpp"
#include "colcheck/selftest/definition.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

using definition::Numbers, definition::Question, definition::World;
using In = Mistake::In;

constexpr int kSizes[] = {1, 2, 3, 5};
constexpr int kScales[] = {2, -3, 5, -1, 7};  // of the ranks' premul_sum
constexpr int kColumns = 60;                  // of each operator, type and number of ranks

// ---- Elements

template <class T>
T drawn(std::mt19937_64& random) {
  if constexpr (is_complex_v<T>) {
    const auto real = drawn<typename T::value_type>(random);
    return {real, drawn<typename T::value_type>(random)};
  } else if constexpr (std::is_integral_v<T>) {
    constexpr T kOdd[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{1}};
    return random() % 3 == 0 ? kOdd[random() % 3] : static_cast<T>(random());
  } else {
    using E = Encoding<T>;
    const T odd[] = {E::nan(1), E::infinity(), T{}, E::least_denormal()};
    const T ordinary(static_cast<Partial<T>>(std::ldexp(static_cast<double>(random() >> 11), -51)));  // up to 4
    const T value = random() % 5 == 0 ? odd[random() % 4] : ordinary;
    return random() % 2 == 0 ? value : E::negative(value);
  }
}

// The user's operator, which does not commute.
template <class T>
T difference_of(T left, T right) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(left) - static_cast<std::uint64_t>(right));
  else
    return static_cast<T>(static_cast<Partial<T>>(left) - static_cast<Partial<T>>(right));
}

template <class T>
std::vector<Op> ops_of(Operator op, int size) {
  const auto subtract = [](const void* left, const void* right, void* result, std::size_t /*one*/, DType /*of T*/) {
    *static_cast<T*>(result) = difference_of(*static_cast<const T*>(left), *static_cast<const T*>(right));
  };
  if (op == Operator::user) return {Op::user(subtract, false, "difference")};
  if (op != Operator::premul_sum) return {static_cast<ReduceOp>(op)};
  std::vector<Op> ops;
  for (int rank = 0; rank < size; ++rank) ops.push_back(Op::premul_sum(kScales[rank]));
  return ops;
}

// By definition, of the first ranks of `size`.
template <class T>
T defined_fold(Operator op, int size, std::vector<T> elements, const Mistake& mistake) {
  if (mistake.in == In::definition && elements.size() > 1) elements.pop_back();
  if (op == Operator::user)
    return std::accumulate(elements.begin() + 1, elements.end(), T(elements[0]), difference_of<T>);
  std::vector<Partial<T>> x(elements.begin(), elements.end());
  for (std::size_t rank = 0; rank < x.size() && op == Operator::premul_sum; ++rank) {
    if constexpr (std::is_integral_v<T>)
      x[rank] = static_cast<T>(static_cast<definition::Exact>(x[rank]) * static_cast<definition::Exact>(kScales[rank]));
    else
      x[rank] *= static_cast<typename tools::RealOf<Partial<T>>::Type>(kScales[rank]);
  }
  const auto by = op == Operator::premul_sum ? ReduceOp::sum : static_cast<ReduceOp>(op);
  if constexpr (is_narrow_v<T>)
    return definition::narrowed<T>(definition::folded(by, x, size));
  else
    return definition::folded(by, x, size);
}

template <class T>
void compare_type(const Mistake& mistake, Agreement& agreement) {
  constexpr DType kType = dtype_of<T>();
  std::mt19937_64 random(static_cast<std::uint64_t>(kType));
  for (int i = 0; i < static_cast<int>(std::size(kSizes)) * kOperatorCount * kColumns; ++i) {
    const auto op = static_cast<Operator>(i % kOperatorCount);
    const int size = kSizes[i / kOperatorCount % static_cast<int>(std::size(kSizes))];
    if (!is_defined(op, kType) || op == Operator::ordered) continue;  // that is another user's
    std::vector<T> elements;
    for (int rank = 0; rank < size; ++rank) elements.push_back(drawn<T>(random));
    const auto input = [&](int rank) -> T { return elements[static_cast<std::size_t>(rank)]; };
    const auto got =
        static_cast<T>(tools::partial_fold<T>(ops_of<T>(op, size), size, 0, size, input, PlantedSteps(mistake.bug)));
    ++agreement.elements;
    if (!is_alike(got, defined_fold(op, size, elements, mistake)))
      agreement.difference = fmt::format("{} of {}, {} ranks", to_string(op), to_string(kType), size);
  }
}

// ---- Calls

// With lengths of blocks that differ, where they may.
tools::ReferenceCall call_of(Collective collective, Operator op, int size, int root) {
  const CollectiveRow& row = row_of(collective);
  tools::ReferenceCall call{
      .collective = collective, .size = size, .root = root, .count = 5, .ops = ops_of<std::int64_t>(op, size)};
  const int lists = !row.has_counts() ? 0 : row.counts == BlockCounts::pairs ? size : 1;
  for (int i = 0; i < lists * size; ++i) call.counts.push_back(static_cast<std::size_t>(3 * i + 1) % 5);
  return call;
}

Question question_of(const tools::ReferenceCall& call, Operator op, const Mistake& mistake, std::mt19937_64& random) {
  const CollectiveRow& row = row_of(call.collective);
  const auto size = static_cast<std::size_t>(call.size);
  Question q{.in = {}, .root = static_cast<std::size_t>(call.root), .counts = {}, .fold = {}};
  for (std::size_t from = 0; from < size; ++from) {
    auto& counts = q.counts.emplace_back(size, call.count);
    const std::size_t first = row.counts == BlockCounts::pairs ? from * size : 0;
    for (std::size_t to = 0; to < size && row.has_counts(); ++to) counts[to] = call.counts[first + to];
    const std::size_t all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    Numbers& own = q.in.emplace_back(row.in == Extent::blocks ? all : counts[from]);
    for (std::int64_t& number : own) number = drawn<std::int64_t>(random);
  }
  q.fold = [=, size = call.size](const Numbers& x) { return defined_fold(op, size, x, mistake); };
  return q;
}

World defined(Question q, Collective collective, const Mistake& mistake) {
  for (Numbers& own : q.in)
    if (mistake.in == In::definition) std::reverse(own.begin(), own.end());
  return definition::kByCollective[static_cast<std::size_t>(collective)](q);
}

Numbers computed(tools::ReferenceCall call, const World& in, int rank, const Mistake& mistake) {
  const int shift = mistake.in == In::arithmetic ? 1 : 0;
  call.root = (call.root + shift) % call.size;
  auto segments = output_segments(call, rank);
  for (tools::Segment& segment : segments)
    if (!row_of(call.collective).rooted) segment.first = (segment.first + shift) % call.size;
  Numbers output;
  const auto value = [&](int from, std::size_t i) {
    const Numbers& own = in[static_cast<std::size_t>(from)];
    return i < own.size() ? own[i] : 0;  // by mistake, beyond its end
  };
  tools::each_element<std::int64_t>(call, segments, value, [&](std::int64_t element) { output.push_back(element); });
  return output;
}

}  // namespace

Agreement compare(Collective collective, const Mistake& mistake) {
  Agreement agreement;
  const CollectiveRow& row = row_of(collective);
  std::mt19937_64 random(static_cast<std::uint64_t>(collective));
  for (int number = 0; number < (row.reduces() ? kOperatorCount - 1 : 1); ++number) {
    const auto op = static_cast<Operator>(number);
    for (const int size : kSizes) {
      for (int root = 0; root < (row.rooted ? size : 1); ++root) {
        const tools::ReferenceCall call = call_of(collective, op, size, root);
        const Question q = question_of(call, op, mistake, random);
        const World want = defined(q, collective, mistake);
        for (int rank = 0; rank < size; ++rank) {
          agreement.elements += want[static_cast<std::size_t>(rank)].size();
          if (computed(call, q.in, rank, mistake) != want[static_cast<std::size_t>(rank)])
            agreement.difference = fmt::format("{} by {}, {} ranks, root {}, rank {}", to_string(collective),
                                               to_string(op), size, root, rank);
        }
      }
    }
  }
  return agreement;
}

Agreement compare_folds(const Mistake& mistake) {
  Agreement agreement;
  for (int i = 0; i < kDTypeCount; ++i)
    with_element(static_cast<DType>(i), [&](auto zero) { compare_type<decltype(zero)>(mistake, agreement); });
  return agreement;
}

AgreementReport compare_all() {
  std::size_t elements = 0, planted = 0;
  std::string wrong;
  const auto take = [&](std::string_view name, const Agreement& agreement, const Mistake& mistake) {
    const bool is_planted = mistake.in != In::neither, differs = !agreement.difference.empty();
    planted += is_planted ? 1 : 0;
    elements += is_planted ? 0 : agreement.elements;
    if (is_planted && !differs) wrong += fmt::format("\n  a mistake in {} is MISSED", name);
    if (!is_planted && differs) wrong += "\n  they differ: " + agreement.difference;
  };
  for (int i = 0; i < static_cast<int>(Collective::barrier); ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const In in : {In::neither, In::arithmetic, In::definition})
      take(to_string(collective), compare(collective, {in}), {in});
  }
  for (const In in : {In::neither, In::definition}) take("a fold", compare_folds({in}), {in});
  for (const Bug bug : kFoldBugs) take("a fold", compare_folds({In::arithmetic, bug}), {In::arithmetic, bug});
  return {
      wrong.empty(),
      fmt::format("{} arithmetic  {} results are as the definitions have them, and {} mistakes planted in either "
                  "show{}",
                  wrong.empty() ? "✔" : "✘", tools::grouped(elements), planted, wrong.empty() ? "" : ", but:" + wrong)};
}

}  // namespace col::colcheck

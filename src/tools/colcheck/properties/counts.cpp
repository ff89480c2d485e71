// Vectors of every count, and every rank as the root.
#include <array>
#include <random>

#include "colcheck/engine/covering.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// ---- roots: Every rank is the root of every rooted primitive. Quick runs take the algorithms and backends in turn.

void add_roots(Draw& draw) {
  for (int i = 0; i < kPrimitiveCount; ++i) {
    if (!is_rooted(static_cast<Primitive>(i))) continue;
    int turn = 0;
    for (const int ranks : draw.selection().ranks) {
      std::vector<Form> forms = draw.forms_of(static_cast<Primitive>(i));
      std::erase_if(forms, [&](const Form& form) { return !serves(form, ranks); });
      const auto count = static_cast<int>(forms.size());
      for (int root = 0; root < ranks && count > 0; ++root) {
        for (int taken = 0; taken < (draw.quick() ? 1 : count); ++taken)
          draw.add_on(forms[static_cast<std::size_t>(turn++ % count)], ranks).root = root;
      }
      // A backend's own may not have had its turn.
      for (const Form& form : forms) {
        if (draw.quick() && form.is_native()) draw.add_on(form, ranks).root = turn++ % ranks;
      }
    }
  }
}

// ---- counts: Counts around which libraries change course: few elements, one more or less than there are ranks,
// primes, and one element less, as many, and one more than the pieces in which messages travel.

// In shared memory: the largest message that is sent whole, a part of a larger one, a ring; by default, a segment of a
// pipelined algorithm with float32. The first is for counts of the other kinds.
constexpr std::array<std::size_t, 5> kPieceBytes = {0, 8 << 10, 32 << 10, 64 << 10, 256 << 10};
// A segment of algorithms that must use short ones: forms_of().
constexpr std::size_t kShortSegmentBytes = 64;
constexpr std::array kDTypes = {DType::uint8, DType::bfloat16, DType::int32, DType::float64};
// What a case may move if every rank sends to every rank: the reference costs more than the call.
constexpr std::size_t kMostQuickBytes = std::size_t{2} << 20, kMostBytes = std::size_t{6} << 20;

// Whether algorithms cut the vector into one piece per rank.
bool is_cut(Primitive primitive) {
  return primitive == Primitive::allreduce || primitive == Primitive::reduce || primitive == Primitive::broadcast;
}

class PieceTable {
 public:
  explicit PieceTable(Draw& draw)
      : selection_(draw.selection()), draw_(draw), forms_(draw_.forms()), ranks_(draw_.ranks()) {
    std::erase_if(forms_, [this](const Form& form) { return skips(form); });
  }

  void add_cases() {
    if (forms_.empty()) return;
    const auto number = [](const auto& list) { return static_cast<int>(list.size()); };
    const Parameters parameters{
        {number(forms_), number(ranks_), number(selection_.backends), number(kPieceBytes), 3, number(kDTypes)},
        [this](Choice a, Choice b) { return compatible(a, b); }};
    std::mt19937_64 random(selection_.seed);
    for (const Row& row : cover(parameters, random)) add_case(row);
  }

 private:
  enum Parameter : std::size_t { kForm, kRanks, kBackend, kPiece, kStep, kType };

  // A quick run uses chosen algorithms and those of backends. `exact` has small counts with all others.
  bool skips(const Form& form) const {
    if (form.primitive == Primitive::barrier) return true;
    return draw_.quick() && form.built_in != nullptr && selection_.algorithms.empty() && !is_segmented(form);
  }
  static bool is_segmented(const Form& form) { return form.algorithm.find("segment") != std::string::npos; }

  bool compatible(Choice a, Choice b) const {
    if (a.parameter == kForm) return form_allows(forms_[static_cast<std::size_t>(a.value)], b);
    if (a.parameter == kRanks && b.parameter == kPiece)
      return is_affordable(ranks_[static_cast<std::size_t>(a.value)], kPieceBytes[static_cast<std::size_t>(b.value)]);
    return true;
  }
  bool form_allows(const Form& form, Choice other) const {
    if (other.parameter == kRanks) return serves(form, ranks_[static_cast<std::size_t>(other.value)]);
    if (other.parameter == kBackend)
      return !form.is_native() || form.backend == selection_.backends[static_cast<std::size_t>(other.value)];
    // Thousands of segments take long, and are no more than a few.
    return other.parameter != kPiece || other.value == 0 || !is_segmented(form);
  }
  bool is_affordable(int ranks, std::size_t bytes) const {
    const auto p = static_cast<std::size_t>(ranks);
    return p * p * bytes <= (draw_.quick() ? kMostQuickBytes : kMostBytes);
  }

  void add_case(const Row& row) {
    const Form& form = forms_[static_cast<std::size_t>(row[kForm])];
    Case& c = draw_.add_on(form, ranks_[static_cast<std::size_t>(row[kRanks])]);
    c.backend = selection_.backends[static_cast<std::size_t>(row[kBackend])];
    set_dtype(c, kDTypes[static_cast<std::size_t>(row[kType])]);
    c.count = count_of_piece(c, form, kPieceBytes[static_cast<std::size_t>(row[kPiece])], row[kStep]);
  }

  std::size_t count_of_piece(const Case& c, const Form& form, std::size_t piece_bytes, int step) const {
    const std::uint64_t drawn = mix(c.seed, 1);
    if (piece_bytes == 0 && !is_segmented(form))
      return count_of(static_cast<int>(drawn % kCountClasses), c.ranks, drawn);
    if (piece_bytes == 0) piece_bytes = kShortSegmentBytes * (1 + drawn % 3);
    const auto p = static_cast<std::size_t>(c.ranks);
    std::size_t count = piece_bytes / size_of(c.dtype);
    if (is_cut(c.primitive) && drawn % 2 == 0 && is_affordable(c.ranks, p * piece_bytes)) count *= p;
    return count + static_cast<std::size_t>(step) - 1;
  }

  const Selection& selection_;
  Draw& draw_;
  std::vector<Form> forms_;
  std::vector<int> ranks_;
};

void add_counts(Draw& draw) {
  PieceTable(draw).add_cases();
}

}  // namespace

const Property kRoots = in_group("roots", "rooted primitives are right with every rank as the root", &add_roots,
                                 &run_whole_case, OnGpus::buffers);
const Property kCounts =
    in_group("counts", "no count is special: none, primes, one beside the sizes of segments and of messages",
             &add_counts, &run_whole_case, OnGpus::buffers);

}  // namespace col::colcheck

// any_ranks: in Order::tree, the bits depend on the contributions alone: they are those of the definition, however the
// ranks share them, by every algorithm that keeps the order. Others are refused by name, before any data moves.
#include <optional>
#include <string>
#include <vector>

#include <col/select.hpp>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kMostContributions = 40;
// Where the sum is rounded once to fewer bits, another order hardly ever shows: more than half of the cases are others.
constexpr DType kTypes[] = {DType::float32, DType::float64, DType::bfloat16, DType::float32,       DType::float64,
                            DType::float16, DType::float32, DType::float64,  DType::float8_e4m3fn, DType::float8_e5m2};

void add_any_ranks(Draw& draw) {
  add_number_cases(draw, {.dtypes = kTypes,
                          .operators = kScaling,
                          .quick_rows = 4,
                          .full_rows = 24,
                          .shortest = 16,
                          .longest = 700,
                          .takes = [](const Form& form) {
                            const auto collective = collective_of(form.primitive);
                            return collective && row_of(*collective).folds == Folds::all;
                          }});
}

// Shares of the ranks. In half of the calls, all give something; in others, ranks that give nothing are common. It
// depends on the number of contributions alone: in a group that comes again, calls that name so many share them alike.
std::vector<std::size_t> shares_of(int ranks, std::size_t total) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t least = total % 2 == 0 && total >= n ? 1 : 0;
  std::vector<std::size_t> shares(n, least);
  for (std::size_t v = least * n; v < total; ++v) {
    const std::uint64_t random = mix(total, 40, v);
    ++shares[(random % 4 == 0 ? total : random >> 8) % shares.size()];
  }
  return shares;
}

// One call, of which this rank gives its share.
template <class T>
class SharedCall {
 public:
  SharedCall(const Case& c, int rank)
      : call_(reduction_of(c, &broken_scale)),
        length_(input_count(c)),
        counts_(uneven_counts(c.ranks, length_)),
        mine_(covered(call_, rank, c.ranks, length_)) {
    const std::size_t total = 1 + mix(c.seed, 41) % kMostContributions;
    contributions_ = ill_conditioned_inputs<T>(static_cast<int>(total), length_, c.seed);
    const std::vector<std::size_t> shares = shares_of(c.ranks, total);
    for (int r = 0; r < c.ranks; ++r) {
      for (std::size_t i = 0; i < shares[static_cast<std::size_t>(r)]; ++i) {
        const std::vector<T>& next = contributions_[ops_.size()];
        ops_.push_back(call_.op(r));
        if (r == rank) own_.insert(own_.end(), next.begin(), next.end());
      }
    }
    // A backend's own collective has the order only where the call blocks.
    const bool is_named_native =
        !c.algorithm.empty() && find_algorithm(call_.collective, AlgorithmSpec::parse(c.algorithm).name) == nullptr;
    if (is_named_native) call_.asynchronous = false;
    in_place_ = c.in_place && own_.size() == mine_.count;
  }

  std::vector<T> output(Group& group, const std::string& algorithm) const {
    std::vector<T> in = own_, out = in_place_ ? own_ : std::vector<T>(mine_.count);
    col::Options options = call_.options(group.rank());
    options.algorithm = algorithm;
    options.order = Order::tree;
    options.contributions = ops_.size();
    col::Call call{.collective = call_.collective, .in = in_place_ ? out : in, .out = out};
    if (row_of(call_.collective).has_counts()) call.in_counts = counts_;
    call_.asynchronous ? group.start(call, options).wait() : group.run(call, options);
    return out;
  }

  std::string problem_with(const std::vector<T>& output) const {
    for (std::size_t i = 0; i < mine_.count; ++i) {
      const T want = tree_fold(ops_, contributions_, mine_.begin + i);
      if (!is_alike(output[i], want))
        return fmt::format("element {} of {} contributions is {}, not {}", i, ops_.size(), show(output[i]), show(want));
    }
    return {};
  }

  Collective collective() const { return call_.collective; }

 private:
  Reduction call_;
  std::size_t length_;               // of a contribution
  std::vector<std::size_t> counts_;  // of a reduce_scatterv
  Covered mine_;                     // of the result
  PerRank<T> contributions_;
  std::vector<Op> ops_;  // of each contribution
  std::vector<T> own_;
  bool in_place_ = false;
};

// One that is not chosen but named. A backend's own may be refused for these shares alone.
template <class T>
std::string problem_by_name(Group& group, const SharedCall<T>& call, const std::string& algorithm) {
  const Algorithm* const built_in = find_algorithm(call.collective(), AlgorithmSpec::parse(algorithm).name);
  const bool keeps_tree = built_in != nullptr && built_in->keeps_tree;
  std::optional<std::vector<T>> output;
  try {
    output = call.output(group, algorithm);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument || error.message().find("tree's order") == std::string::npos)
      return fmt::format("{} was refused, but with: {}", algorithm, error.what());
    return keeps_tree ? fmt::format("{} was refused: {}", algorithm, error.what()) : "";
  }
  if (!keeps_tree && built_in != nullptr)
    return fmt::format("{} was not refused, though it does not keep the tree's order", algorithm);
  return call.problem_with(*output);
}

Finding run_any_ranks(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    const SharedCall<T> call(c, rank.rank());
    // From here on, all ranks know what each gives, where the call blocks: natives need that.
    std::string problem = call.problem_with(call.output(rank.group(), {}));
    if (problem.empty() && !c.algorithm.empty()) problem = problem_by_name(rank.group(), call, c.algorithm);
    return Finding::of(problem);
  });
}

}  // namespace

const Property kAnyRanks =
    in_group("any_ranks", "in the tree's order, the bits depend on the contributions alone, or the call is refused",
             &add_any_ranks, &run_any_ranks, OnGpus::results);

}  // namespace col::colcheck

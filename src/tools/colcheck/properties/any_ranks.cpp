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

void add_any_ranks(Draw& draw) {
  add_number_cases(draw, {.dtypes = kFloats,
                          .operators = kScaling,
                          .quick_rows = 4,
                          .full_rows = 24,
                          .shortest = 1,
                          .longest = 700,
                          .takes = [](const Form& form) { return form.primitive == Primitive::allreduce; }});
}

// What each rank gives. Ranks that give nothing are common. It depends on the number of contributions alone: in a group
// that comes again, calls that name so many share them alike.
std::vector<std::size_t> shares_of(int ranks, std::size_t total) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(ranks), 0);
  for (std::size_t v = 0; v < total; ++v) {
    const std::uint64_t random = mix(total, 40, v);
    ++shares[(random % 4 == 0 ? total : random >> 8) % shares.size()];
  }
  return shares;
}

// One call, of which this rank gives its share.
template <class T>
class SharedCall {
 public:
  SharedCall(const Case& c, int rank) : call_(reduction_of(c, &broken_scale)), count_(c.count) {
    const std::size_t total = 1 + mix(c.seed, 41) % kMostContributions;
    contributions_ = ill_conditioned_inputs<T>(static_cast<int>(total), c.count, c.seed);
    const std::vector<std::size_t> shares = shares_of(c.ranks, total);
    for (int r = 0; r < c.ranks; ++r) {
      for (std::size_t i = 0; i < shares[static_cast<std::size_t>(r)]; ++i) {
        const std::vector<T>& next = contributions_[ops_.size()];
        ops_.push_back(call_.op(r));
        if (r == rank) own_.insert(own_.end(), next.begin(), next.end());
      }
    }
    in_place_ = c.in_place && own_.size() == c.count;
  }

  std::vector<T> output(Group& group, const std::string& algorithm) const {
    std::vector<T> in = own_, out = in_place_ ? own_ : std::vector<T>(count_);
    col::Options options = call_.options(group.rank());
    options.algorithm = algorithm;
    options.order = Order::tree;
    options.contributions = ops_.size();
    const col::Call call{.collective = Collective::allreduce, .in = in_place_ ? out : in, .out = out};
    call_.asynchronous ? group.start(call, options).wait() : group.run(call, options);
    return out;
  }

  std::string problem_with(const std::vector<T>& output) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const T want = tree_fold(ops_, contributions_, i);
      if (!is_alike(output[i], want))
        return fmt::format("element {} of {} contributions is {}, not {}", i, ops_.size(), show(output[i]), show(want));
    }
    return {};
  }

 private:
  Reduction call_;
  std::size_t count_;
  PerRank<T> contributions_;
  std::vector<Op> ops_;  // of each contribution
  std::vector<T> own_;
  bool in_place_ = false;
};

bool is_native(const std::string& algorithm) {
  return find_algorithm(Collective::allreduce, AlgorithmSpec::parse(algorithm).name) == nullptr;
}

bool keeps_tree(const std::string& algorithm) {
  const Algorithm* const built_in = find_algorithm(Collective::allreduce, AlgorithmSpec::parse(algorithm).name);
  return built_in != nullptr && built_in->keeps_tree;
}

// One that is not chosen but named. A backend's own may be refused for these shares alone.
template <class T>
std::string problem_by_name(Group& group, const SharedCall<T>& call, const std::string& algorithm) {
  std::optional<std::vector<T>> output;
  try {
    output = call.output(group, algorithm);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument || error.message().find("tree's order") == std::string::npos)
      return fmt::format("{} was refused, but with: {}", algorithm, error.what());
    return keeps_tree(algorithm) ? fmt::format("{} was refused: {}", algorithm, error.what()) : "";
  }
  if (!keeps_tree(algorithm) && !is_native(algorithm))
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

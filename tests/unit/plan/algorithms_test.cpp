// Every registered algorithm, verified symbolically. How the product of cases is thinned:
//
//   up to 16 ranks   all counts x all modes x all roots x all parameters
//   17 to 64         all counts x roots 0, 1, p/2, p-1; mode and parameters go round, one per case
//   a sample above   one case each; count, mode, root and parameters go round. An algorithm of many messages is tried
//                    with one of 513, 1000 and 1024 ranks only: they go round along the registry
//
// "Go round" means that a number that grows from case to case picks the next one, so that neighbouring group sizes
// together see all of them.
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

using test::describe;
using test::Mode;

template <class T>
const T& nth(const std::vector<T>& all, std::size_t n) {
  return all[n % all.size()];
}

// Whether the text names another algorithm of the collective that serves the request.
bool names_an_alternative(const std::string& refusal, const Algorithm& refused, const PlanRequest& request) {
  std::string word;
  for (const char c : refusal + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    const Algorithm* other = find_algorithm(refused.collective, word);
    if (other != nullptr && other->name != refused.name && !other->refuse(request)) return true;
    word.clear();
  }
  return false;
}

// What is wrong with an algorithm's answer to one problem; nothing when all is well.
std::string complaint(const Algorithm& algorithm, const PlanProblem::Spec& spec, std::size_t& messages) {
  messages = 0;
  const PlanProblem problem(spec);
  const std::optional<std::string> refusal = algorithm.refuse(problem.request(0));
  for (int rank = 1; rank < spec.size; ++rank) {
    if (algorithm.refuse(problem.request(rank)) != refusal)
      return fmt::format("{}: rank {}'s refusal differs from rank 0's", describe(algorithm, spec), rank);
  }
  if (refusal) {
    if (names_an_alternative(*refusal, algorithm, problem.request(0))) return {};
    return fmt::format("{}: the refusal names nothing that serves: {}", describe(algorithm, spec), *refusal);
  }
  const Verdict verdict = verify(problem, plans_of(algorithm, problem));
  messages = verdict.messages;
  if (!verdict.good) return fmt::format("{}: {}", describe(algorithm, spec), verdict.problem);
  if (verdict.order < algorithm.order)
    return fmt::format("{}: declared {}, but combines in {} order", describe(algorithm, spec),
                       to_string(algorithm.order), to_string(verdict.order));
  return {};
}

// Tries cases of one algorithm, and gives up after some complaints.
class Trial {
 public:
  explicit Trial(const Algorithm& algorithm, std::mt19937& random) : algorithm_(algorithm), random_(random) {}

  bool has_given_up() const { return complaints_ >= 3; }
  std::size_t cases() const { return cases_; }
  std::size_t messages() const { return messages_; }  // of the last case

  // `what`: a count, or the shape of a v-form's blocks.
  void run(int size, int root, std::size_t what, const Mode& mode, const PlanParameters& parameters) {
    if (has_given_up()) return;
    PlanProblem::Spec spec = test::spec_of(algorithm_.collective, size, root, what, mode, random_);
    spec.parameters = parameters;
    // Nothing may depend on where a rank is but the order of what it does.
    spec.node_of_rank = test::random_nodes(size, random_);
    ++cases_;
    const std::string text = complaint(algorithm_, spec, messages_);
    if (text.empty()) return;
    ++complaints_;
    FAIL_CHECK(text);
  }

 private:
  const Algorithm& algorithm_;
  std::mt19937& random_;
  int complaints_ = 0;
  std::size_t cases_ = 0, messages_ = 0;
};

std::vector<std::size_t> counts_or_shapes(Collective collective, int size) {
  if (!row_of(collective).has_data()) return {0};
  if (!row_of(collective).has_counts()) return test::counts_for(size);
  std::vector<std::size_t> shapes;
  for (std::size_t shape = 0; shape < test::kBlockShapes; ++shape) shapes.push_back(shape);
  return shapes;
}

std::vector<int> roots_for(Collective collective, int size) {
  if (!row_of(collective).rooted) return {0};
  std::set<int> roots = {0, size > 1 ? 1 : 0, size / 2, size - 1};
  if (size <= 16) {
    for (int root = 0; root < size; ++root) roots.insert(root);
  }
  return {roots.begin(), roots.end()};
}

// All that can be combined, in groups of these sizes.
void try_all(int smallest, int largest) {
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::size_t cases = 0;
  for (const Algorithm& algorithm : algorithms()) {
    Trial trial(algorithm, random);
    for (int size = smallest; size <= largest; ++size) {
      for (const int root : roots_for(algorithm.collective, size)) {
        for (const std::size_t what : counts_or_shapes(algorithm.collective, size)) {
          for (const Mode& mode : test::modes_of(algorithm.collective)) {
            for (const PlanParameters& parameters : test::parameters_of(algorithm))
              trial.run(size, root, what, mode, parameters);
          }
        }
      }
    }
    cases += trial.cases();
  }
  CHECK(cases >= static_cast<std::size_t>(largest - smallest + 1) * algorithms().size());
}

}  // namespace

TEST_CASE("every algorithm is right in groups of up to 9 ranks", "[plan]") {
  try_all(1, 9);
}

TEST_CASE("every algorithm is right in groups of 10 to 16 ranks", "[plan][rest]") {
  try_all(10, 16);
}

TEST_CASE("every algorithm is right in groups of 17 to 64 ranks", "[plan][rest]") {
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const Algorithm& algorithm : algorithms()) {
    const std::vector<Mode> modes = test::modes_of(algorithm.collective);
    const std::vector<PlanParameters> parameters = test::parameters_of(algorithm);
    Trial trial(algorithm, random);
    std::size_t turn = 0;
    for (int size = 17; size <= 64; ++size) {
      for (const int root : roots_for(algorithm.collective, size)) {
        for (const std::size_t what : counts_or_shapes(algorithm.collective, size)) {
          trial.run(size, root, what, nth(modes, turn), nth(parameters, turn / modes.size()));
          ++turn;
        }
      }
    }
    CHECK(trial.cases() > 0);
  }
}

TEST_CASE("every algorithm is right in groups of more than 64 ranks", "[plan][rest]") {
  const std::vector<int> kLargest = {513, 1000, 1024};
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const Algorithm& algorithm : algorithms()) {
    const std::vector<Mode> modes = test::modes_of(algorithm.collective);
    const std::vector<PlanParameters> parameters = test::parameters_of(algorithm);
    Trial trial(algorithm, random);
    std::size_t turn = 0;
    const int largest = nth(kLargest, static_cast<std::size_t>(&algorithm - algorithms().data()));
    bool is_dense = false;
    for (const int size : {65, 96, 100, 127, 128, 129, 255, 256, 257, 513, 1000, 1024}) {
      if (is_dense && size > 257 && size != largest) continue;
      const std::vector<int> roots = roots_for(algorithm.collective, size);
      std::vector<std::size_t> whats = counts_or_shapes(algorithm.collective, size);
      whats.erase(whats.begin());  // nothing at all: tried often enough above
      if (whats.empty()) whats.push_back(0);
      trial.run(size, nth(roots, turn), nth(whats, turn), nth(modes, turn), nth(parameters, turn));
      ++turn;
      is_dense = is_dense || trial.messages() > 30'000;
    }
    CHECK(trial.cases() > 0);
  }
}

TEST_CASE("long vectors take no longer to verify than short ones", "[plan]") {
  for (const Algorithm& algorithm : algorithms()) {
    if (row_of(algorithm.collective).has_counts() || !algorithm.parameters.empty()) continue;
    const PlanProblem problem({.collective = algorithm.collective, .size = 6, .count = 3'000'000'019});
    if (algorithm.refuse(problem.request(0))) continue;
    INFO(algorithm.name);
    const Verdict verdict = verify(problem, plans_of(algorithm, problem));
    CHECK(verdict.problem == "");
  }
}

TEST_CASE("the first algorithm of a collective serves every request", "[plan]") {
  std::set<Collective> seen;
  for (const Algorithm& algorithm : algorithms()) {
    if (!seen.insert(algorithm.collective).second) continue;
    std::mt19937 random(1);
    for (int size = 1; size <= 70; ++size) {
      for (const int root : roots_for(algorithm.collective, size)) {
        for (const std::size_t what : counts_or_shapes(algorithm.collective, size)) {
          for (const Mode& mode : test::modes_of(algorithm.collective)) {
            const PlanProblem::Spec spec = test::spec_of(algorithm.collective, size, root, what, mode, random);
            const PlanProblem problem(spec);
            const auto refusal = algorithm.refuse(problem.request(0));
            if (refusal) FAIL(describe(algorithm, spec) << ": " << *refusal);
          }
        }
      }
    }
  }
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    INFO(to_string(collective));
    CHECK(seen.count(collective) == (row_of(collective).is_message ? 0 : 1));
  }
}

TEST_CASE("the name of an algorithm is unique within its collective", "[plan]") {
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.collective) << " " << algorithm.name);
    CHECK(find_algorithm(algorithm.collective, algorithm.name) == &algorithm);
    CHECK(!algorithm.summary.empty());
  }
}

}  // namespace col

// Programs: different collectives and messages one right after the other, with nothing in between that would let the
// ranks catch up with each other, and what is asynchronous waited for in another order on each rank.
#include <algorithm>
#include <iterator>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kLength = 20;

// A program for each primitive on each backend; with --algo, and for what a backend does in its own way, one for each
// of those algorithms.
void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  std::size_t number = 0;
  const auto add = [&](const Form& form, const std::string& backend, int ranks) {
    Case c;
    c.property = "programs";
    c.backend = backend;
    c.ranks = ranks;
    c.primitive = form.primitive;
    c.algorithm = form.algorithm;
    c.seed = mix(selection.seed, 50, ++number);
    all.push_back(std::move(c));
  };
  const auto ranks = ranks_for_sequences(selection);
  const auto forms = forms_of(selection);
  for (const std::string& backend : selection.backends) {
    for (const Form& form : forms) {
      if (form.is_native() && form.backend != backend) continue;
      if (quick && form.built_in != nullptr && selection.algorithms.empty()) continue;
      std::vector<int> served;
      std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(served), [&](int n) { return serves(form, n); });
      if (served.empty()) continue;
      // In a full run, what is chosen by default comes with every number of ranks.
      const std::size_t wanted = !quick && form.algorithm.empty() ? served.size() : 1;
      for (std::size_t i = 0; i < wanted; ++i) add(form, backend, in_turn(served, number));
    }
  }
}

Finding run(Rank& rank, const Case& c) {
  const ProgramStyle style{.about = c.primitive, .algorithm = c.algorithm, .backend = c.backend, .devices = c.devices};
  std::string problem = run_program(rank.group(), style, c.seed, kLength);
  rank.group().barrier();  // no later message may meet a receive from any rank of this program
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kPrograms{"programs",
                         "different calls back to back, waited for in other orders on each rank, are all right",
                         Property::Kind::group,
                         &cases,
                         &run,
                         OnGpus::buffers};

}  // namespace col::colcheck

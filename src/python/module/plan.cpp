#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "errors.hpp"
#include "gil.hpp"

namespace col::python {
namespace {

// The plans of all ranks for one problem. Never changes.
class PlanSet {
 public:
  // Requires: plans_for(problem) is valid as long as the problem.
  template <class PlansFor>
  PlanSet(std::string name, PlanProblem::Spec spec, std::size_t element_size, PlansFor&& plans_for)
      : name_(std::move(name)),
        element_size_(element_size),
        problem_(std::make_unique<const PlanProblem>(std::move(spec))),
        plans_(plans_for(*problem_)) {}

  const std::string& name() const { return name_; }
  const PlanProblem::Spec& spec() const { return problem_->spec(); }
  std::string title() const { return std::string(to_string(spec().collective)) + " " + name_; }

  Verdict verify() const { return col::verify(*problem_, plans_); }
  Simulation simulate(const CostModel& model) const {
    const std::size_t wide_size = spec().widens ? size_of(DType::float32) : element_size_;
    return col::simulate(*problem_, plans_, model, element_size_, wide_size);
  }
  std::string svg() const { return draw_svg(*problem_, plans_, title()); }
  std::string text() const { return draw_text(*problem_, plans_, title()); }
  std::string json() const { return plan_to_json(*problem_, plans_, name_); }

 private:
  std::string name_;
  std::size_t element_size_;
  std::unique_ptr<const PlanProblem> problem_;  // its address does not change: plans_ points to it
  PlanOfRank plans_;
};

std::size_t whole(std::int64_t value, const char* name) {
  if (value < 0) refuse(std::string("plan: ") + name + " is " + std::to_string(value) + "; it cannot be negative");
  return static_cast<std::size_t>(value);
}

const Algorithm& algorithm_of(Collective collective, const AlgorithmSpec& wanted) {
  const Algorithm* const found = find_algorithm(collective, wanted.name);
  if (found == nullptr) {
    std::string names;
    for (const Algorithm& each : algorithms())
      if (each.collective == collective) names += (names.empty() ? "" : ", ") + std::string(each.name);
    refuse("plan: " + std::string(to_string(collective)) + " has no algorithm '" + wanted.name + "'" +
           (names.empty() ? ", nor any other" : "; choose from " + names));
  }
  const auto check = [&](std::string_view parameter, bool is_given) {
    if (is_given && found->parameters.find(parameter) == std::string_view::npos)
      refuse("plan: " + wanted.name + " has no parameter '" + std::string(parameter) + "'");
  };
  check("radix", wanted.radix != 0);
  check("segment", wanted.segment_bytes != 0);
  return *found;
}

void check_served(const std::optional<std::string>& why_not) {
  if (why_not) refuse("plan: " + *why_not);
}

PlanSet plans_of_file(const PlanFile& file, PlanProblem::Spec spec, std::size_t element_size) {
  return {file.name(), std::move(spec), element_size, [&](const PlanProblem& problem) -> PlanOfRank {
            check_served(file.refuse(problem.request(0)));
            return [file, &problem](int rank) { return file.build(problem.request(rank)); };
          }};
}

PlanSet make_plan(const std::string& collective, const std::string& algorithm, const std::string& file_text, int ranks,
                  std::int64_t count, int root, const std::vector<std::int64_t>& counts, bool in_place, bool widens,
                  bool wide_input, std::vector<int> nodes, std::int64_t element_size) {
  PlanProblem::Spec spec{.collective = collective_from_string(collective),
                         .size = ranks,
                         .root = root,
                         .count = whole(count, "count"),
                         .widens = widens,
                         .wide_input = wide_input,
                         .in_place = in_place,
                         .node_of_rank = std::move(nodes)};
  for (const std::int64_t each : counts) spec.counts.push_back(whole(each, "a count"));
  const std::size_t bytes = std::max<std::size_t>(1, whole(element_size, "element_size"));
  if (!file_text.empty()) return plans_of_file(PlanFile::parse(file_text), std::move(spec), bytes);

  const AlgorithmSpec wanted = AlgorithmSpec::parse(algorithm);
  if (!wanted.file.empty()) return plans_of_file(PlanFile::load(wanted.file), std::move(spec), bytes);
  const Algorithm& found = algorithm_of(spec.collective, wanted);
  spec.parameters.radix = wanted.radix;
  if (wanted.segment_bytes != 0) spec.parameters.segment = std::max<std::size_t>(1, wanted.segment_bytes / bytes);
  return {wanted.text(), std::move(spec), bytes, [&](const PlanProblem& problem) {
            check_served(found.refuse(problem.request(0)));
            return plans_of(found, problem);
          }};
}

Simulation simulate_plan(const PlanSet& plan, double alpha, double beta, double gamma, double copy,
                         std::optional<double> inter_alpha, std::optional<double> inter_beta, int cores,
                         double cpu_per_message, double memory_bandwidth, bool nic_shared) {
  const CostModel model{.intra = {alpha, beta},
                        .inter = {inter_alpha.value_or(alpha), inter_beta.value_or(beta)},
                        .gamma = gamma,
                        .copy = copy,
                        .cores = cores,
                        .cpu_per_message = cpu_per_message,
                        .memory_bandwidth = memory_bandwidth,
                        .nic_shared = nic_shared};
  for (const double value : {alpha, beta, gamma, copy, model.inter.alpha, model.inter.beta, double(cores),
                             cpu_per_message, memory_bandwidth})
    if (!std::isfinite(value) || value < 0) refuse("simulate: takes seconds, bytes and cores of at least 0");
  return without_gil([&] { return plan.simulate(model); });
}

void bind_results(nb::module_& module) {
  nb::class_<Verdict>(module, "Verdict", nb::is_weak_referenceable())
      .def_ro("good", &Verdict::good)
      .def_ro("problem", &Verdict::problem)
      .def_ro("rank", &Verdict::rank)
      .def_ro("round", &Verdict::round)
      .def_prop_ro("order", [](const Verdict& v) { return std::string(to_string(v.order)); })
      .def_ro("rounds", &Verdict::rounds)
      .def_ro("messages", &Verdict::messages)
      .def_ro("elements_sent", &Verdict::elements_sent)
      .def_ro("most_elements_sent", &Verdict::most_elements_sent)
      .def("__bool__", [](const Verdict& v) { return v.good; })
      .def("__repr__", [](const Verdict& v) {
        if (!v.good) return "<not good: " + v.problem + ">";
        return "<good: " + std::to_string(v.rounds) + " rounds, " + std::to_string(v.messages) + " messages, " +
               std::to_string(v.elements_sent) + " elements sent>";
      });
  nb::class_<Simulation>(module, "Simulation", nb::is_weak_referenceable())
      .def_ro("seconds", &Simulation::seconds)
      .def_ro("rank_seconds", &Simulation::rank_seconds)
      .def_ro("messages", &Simulation::messages)
      .def_ro("bytes_inter", &Simulation::bytes_inter)
      .def_ro("bytes_intra", &Simulation::bytes_intra)
      .def_ro("node_bytes_out", &Simulation::node_bytes_out)
      .def_ro("node_bytes_in", &Simulation::node_bytes_in);
}

}  // namespace

void bind_plan(nb::module_& module) {
  bind_results(module);
  const CostModel model;
  nb::class_<PlanSet>(module, "PlanSet", nb::is_weak_referenceable(),
                      "The plans of all ranks. col.plan.Plan is what users see.")
      .def_prop_ro("name", &PlanSet::name)
      .def_prop_ro("collective", [](const PlanSet& p) { return std::string(to_string(p.spec().collective)); })
      .def_prop_ro("ranks", [](const PlanSet& p) { return p.spec().size; })
      .def("verify", [](const PlanSet& p) { return without_gil([&] { return p.verify(); }); })
      .def("simulate", simulate_plan, nb::kw_only(), nb::arg("alpha") = model.intra.alpha,
           nb::arg("beta") = model.intra.beta, nb::arg("gamma") = model.gamma, nb::arg("copy") = model.copy,
           nb::arg("inter_alpha") = nb::none(), nb::arg("inter_beta") = nb::none(), nb::arg("cores") = model.cores,
           nb::arg("cpu_per_message") = model.cpu_per_message, nb::arg("memory_bandwidth") = model.memory_bandwidth,
           nb::arg("nic_shared") = model.nic_shared)
      .def("svg", [](const PlanSet& p) { return without_gil([&] { return p.svg(); }); })
      .def("text", [](const PlanSet& p) { return without_gil([&] { return p.text(); }); })
      .def("json", [](const PlanSet& p) { return without_gil([&] { return p.json(); }); });
  module.def("make_plan", make_plan, nb::arg("collective"), nb::arg("algorithm"), nb::kw_only(),
             nb::arg("file_text") = "", nb::arg("ranks"), nb::arg("count"), nb::arg("root") = 0,
             nb::arg("counts") = std::vector<std::int64_t>(), nb::arg("in_place") = false, nb::arg("widens") = false,
             nb::arg("wide_input") = false, nb::arg("nodes") = std::vector<int>(), nb::arg("element_size") = 4);
  module.def(
      "read_plan",
      [](const std::string& text) {
        const PlanFile file = PlanFile::parse(text);
        return nb::make_tuple(std::string(to_string(file.collective())), file.ranks(), file.chunks());
      },
      nb::arg("text"), "What a plan in a file is for: collective, ranks, chunks. Throws what is wrong with it.");
  module.def(
      "plan_algorithms",
      [](const std::string& collective) {
        const Collective wanted = collective_from_string(collective);
        nb::dict summaries;
        for (const Algorithm& each : algorithms())
          if (each.collective == wanted) summaries[nb::cast(std::string(each.name))] = std::string(each.summary);
        return summaries;
      },
      nb::arg("collective"));
}

}  // namespace col::python

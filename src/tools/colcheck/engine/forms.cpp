#include "colcheck/engine/forms.hpp"

#include <col/select.hpp>

namespace col::colcheck {

std::map<Collective, std::vector<std::string>> native_algorithms(const Group& group) {
  std::map<Collective, std::vector<std::string>> all;
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const auto collective = collective_of(static_cast<Primitive>(i));
    if (!collective) continue;
    for (std::string& name : group.algorithms(*collective)) {
      if (find_algorithm(*collective, name) == nullptr) all[*collective].push_back(std::move(name));
    }
  }
  return all;
}

std::vector<Form> forms_of(const Selection& selection) {
  std::vector<Form> forms;
  const auto add = [&](Form form) {
    if (selection.wants_algorithm(form.algorithm)) forms.push_back(std::move(form));
  };
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    const auto collective = collective_of(primitive);
    add({primitive});
    if (!collective) continue;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != *collective) continue;
      const std::string name(algorithm.name);
      add({primitive, name, &algorithm});
      if (algorithm.parameters.find("radix") != std::string_view::npos) add({primitive, name + ":radix=3", &algorithm});
      if (algorithm.parameters.find("segment") != std::string_view::npos)
        add({primitive, name + ":segment=64", &algorithm});
    }
    for (const auto& [backend, own] : selection.natives) {
      const auto names = own.find(*collective);
      if (names == own.end()) continue;
      for (const std::string& name : names->second) add({primitive, name, nullptr, backend});
    }
  }
  return forms;
}

bool serves(const Form& form, int ranks) {
  if (form.is_native()) return ranks > 1;  // a world of one does not ask its backend
  if (form.built_in == nullptr) return true;
  PlanRequest request{.collective = form.built_in->collective, .size = ranks};
  request.parameters.radix = AlgorithmSpec::parse(form.algorithm).radix;
  return !form.built_in->refuse(request);
}

bool takes(const Form& form, Operator op) {
  return op != Operator::ordered || form.built_in == nullptr || form.built_in->order != FoldOrder::any;
}

}  // namespace col::colcheck

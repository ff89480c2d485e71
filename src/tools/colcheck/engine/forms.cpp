#include "colcheck/engine/forms.hpp"

#include <algorithm>

#include <col/select.hpp>

#include "colcheck/engine/call.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

// Of the backend for GPUs, NCCL: by kernels of col's own, in rank order and as careful as our plans.
constexpr std::string_view kFold = "fold";

// All ranks get the same answer, and one that must not start is refused before any data moves.
bool starts(Group& group, Primitive primitive, const std::string& algorithm) {
  Case c{.ranks = group.size(), .primitive = primitive, .algorithm = algorithm, .asynchronous = true};
  if (primitive != Primitive::barrier) {
    c.dtype = DType::int32;
    c.count = 1;
  }
  try {
    run_case(group, c);  // whether the result is right, is a question of the cases
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    return false;
  }
}

}  // namespace

Natives native_algorithms(Group& group) {
  Natives all;
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    const auto collective = collective_of(primitive);
    if (!collective) continue;
    for (std::string& name : group.algorithms(*collective)) {
      if (find_algorithm(*collective, name) != nullptr) continue;
      const bool may_start = has_i_form(primitive) && starts(group, primitive, name);
      all[*collective].push_back({std::move(name), may_start});
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
      for (const Native& own_one : names->second) add({primitive, own_one.name, nullptr, backend, own_one.starts});
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

bool is_careless(const Form& form, const Selection& selection) {
  const auto& backends = selection.backends;
  const bool by_nccl = std::any_of(backends.begin(), backends.end(), tools::moves_device_memory);
  return form.backend == to_string(Backend::gloo) || (by_nccl && form.built_in == nullptr && form.algorithm != kFold);
}

bool takes(const Form& form, Operator op) {
  if (tools::moves_device_memory(form.backend) && is_reduction(form.primitive)) {
    // NCCL's own has no bitwise operators; col's kernels have them. Neither runs a function of the host.
    const bool built_in = op < Operator::user, bitwise = op >= Operator::band && op <= Operator::bxor;
    return built_in && (form.algorithm == kFold || !bitwise);
  }
  return op != Operator::ordered || form.built_in == nullptr || form.built_in->order != FoldOrder::any;
}

// NCCL reduces no other types than these; col's kernels beside it also the floats of 8 bits.
bool takes(const Form& form, DType dtype) {
  return !tools::moves_device_memory(form.backend) || !is_reduction(form.primitive) || dtype <= DType::float64 ||
         (form.algorithm == kFold && is_narrow(dtype));
}

}  // namespace col::colcheck

// The ways to ask for a primitive: by default, by each built-in algorithm, and by each of a backend's own algorithms.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "colcheck/engine/property.hpp"

namespace col::colcheck {

struct Form {
  Primitive primitive = Primitive::barrier;
  std::string algorithm = {};           // as an option; empty: the default
  const Algorithm* built_in = nullptr;  // null for the default, and for a backend's own algorithm
  std::string backend = {};             // of a backend's own algorithm; empty: any
  bool starts = true;                   // whether its i-form exists, where the primitive has one
  bool is_native() const { return !backend.empty(); }
  bool may_be_asynchronous() const { return starts && has_i_form(primitive); }
};

// The algorithms of the group's backend itself. Whether they start, a small call of each shows: all ranks of the group
// make it. Throws col::Error if one fails.
Natives native_algorithms(Group& group);

// The forms that `selection` allows. Algorithms with a radix or segments also come with values other than the default.
std::vector<Form> forms_of(const Selection& selection);

// Whether the form can serve that many ranks.
bool serves(const Form& form, int ranks);
// Whether it can serve a case with that operator.
bool takes(const Form& form, Operator op);
// And with elements of that type.
bool takes(const Form& form, DType dtype);
// Whether Gloo or NCCL does it in its own way. A backend may declare its own algorithms less careful with 16-bit sums
// and NaN than our plans, and colcheck does not see what it declares: so theirs are left out of cases about these, and
// over NCCL what is chosen, too, which may be its own. Other backends claim nothing, and are let off nothing.
bool is_careless(const Form& form, const Selection& selection);

}  // namespace col::colcheck

// The settings for the calls of a context's groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/select.hpp>
#include <col/types.hpp>

#include "exec/fault.hpp"

namespace col::group {

struct CallSettings {
  enum class Numerics { fast, strict, deterministic };

  std::vector<AlgorithmOverride> overrides = {};  // COL_ALGORITHM
  std::optional<SelectionTable> table = {};       // COL_SELECTION
  Numerics numerics = Numerics::fast;             // COL_NUMERICS
  Order order = Order::any;                       // COL_ORDER, or the ContextSpec's
  bool compare_first = false;                     // COL_CHECK=strict
  bool progress_thread = false;                   // COL_PROGRESS=thread
  std::optional<exec::Fault> fault = {};          // COL_FAULT
  std::string backend = {};                       // COL_BACKEND; empty: automatic
  Interrupt interrupt = {};                       // as in the ContextSpec, and so below
  bool serialize = false;

  // All but the last two. Throws invalid_argument that names the variable; io if a file cannot be read.
  static CallSettings from_environment();
};

}  // namespace col::group

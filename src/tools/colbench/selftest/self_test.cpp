#include <fmt/format.h>

#include "colbench/command.hpp"
#include "colbench/commands/print.hpp"
#include "colbench/options.hpp"
#include "colbench/selftest/idle_backend.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

namespace exit_code = tools::exit_code;

// What colbench says of a backend that does nothing.
Cell measured(const Invocation& invocation, const char* check, int& code) {
  Method method;
  method.ranks = 2;
  method.launches = 1;
  method.seed = 1;
  method.check = check;
  // Nothing but messages: with them left out, no work is left.
  const CellSpec cell{.operation = Operation::broadcast, .backend = kIdleBackend, .bytes = std::size_t{32} << 20};
  const Results results = invocation.measure(method, std::span(&cell, 1));
  code = results.exit_code;
  return results.cells.empty() ? Cell{} : results.cells.front();
}

}  // namespace

int run_self_test(const Invocation& invocation) {
  CommandLine line(
      "colbench self-test", "Usage: colbench self-test",
      "Measures a backend that moves nothing, with its results looked at and without. The check must refuse\n"
      "the one, the physical bound the other.");
  if (!line.parse(invocation.arguments, 0)) return exit_code::kSuccess;
  int wrong_data = 0, impossible = 0;
  const Cell checked = measured(invocation, "sample", wrong_data);
  const bool caught_by_check = wrong_data == exit_code::kWrongData && checked.check.wrong > 0;
  print(fmt::format("a backend that moves nothing, results looked at: exit {}, {}\n", wrong_data,
                    checked.invalid.empty() ? "taken for good" : checked.invalid));
  const Cell unchecked = measured(invocation, "off", impossible);
  const bool caught_by_bound = impossible == exit_code::kInvalidMeasurement && unchecked.below_bound;
  print(fmt::format("the same, not looked at: exit {}, {}\n", impossible,
                    unchecked.invalid.empty() ? "taken for good" : unchecked.invalid));
  if (caught_by_check && caught_by_bound) return exit_code::kSuccess;
  print("colbench would believe a backend that does nothing\n");
  return exit_code::kWrongData;
}

}  // namespace col::colbench

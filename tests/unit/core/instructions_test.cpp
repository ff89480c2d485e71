// Which kernels are taken, and what COL_ISA says about it.
#include "core/kernels/instructions.hpp"

#include <string>

#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using col::DType;
using col::ErrorCode;
using col::ReduceOp;
using col::core::Instructions;
using col::core::instructions_from_environment;
using col::core::instructions_named;
using core_test::check_error;
using core_test::ScopedVariable;

TEST_CASE("instructions: the best that there are, unless COL_ISA names others", "[instructions]") {
  {
    const ScopedVariable unset("COL_ISA", std::nullopt);
    CHECK(instructions_from_environment() == col::core::best_instructions());
  }
  for (const Instructions each : col::core::kAllInstructions) {
    const ScopedVariable set("COL_ISA", std::string(to_string(each)));
    INFO(to_string(each));
    if (is_available(each)) {
      CHECK(instructions_from_environment() == each);
      CHECK(each <= col::core::best_instructions());
    } else {
      check_error(ErrorCode::invalid_argument, {}, [] { instructions_from_environment(); });
    }
  }
}

TEST_CASE("instructions: a COL_ISA that does not exist, or that the processor lacks, is refused", "[instructions]") {
  const ScopedVariable set("COL_ISA", "sse9");
  check_error(ErrorCode::invalid_argument, {"COL_ISA='sse9' is not one of baseline, avx2, avx512"},
              [] { instructions_from_environment(); });
  check_error(ErrorCode::invalid_argument, {"COL_ISA='avx2'", "it has: baseline;"}, [] {
    instructions_named("avx2", [](Instructions each) noexcept { return each == Instructions::baseline; });
  });
}

TEST_CASE("instructions: every table has the same kernels", "[instructions]") {
  for (const Instructions each : col::core::kAllInstructions) {
    for (int op = 0; op < col::kReduceOpCount; ++op) {
      for (int dtype = 0; dtype < col::kDTypeCount; ++dtype) {
        INFO(to_string(each) << ": " << op << " on " << dtype);
        const bool has_kernel = kernel_table(each).folds[op][dtype] != nullptr;
        CHECK(has_kernel == col::core::is_reducible(static_cast<ReduceOp>(op), static_cast<DType>(dtype)));
        const bool from_float = kernel_table(each).wide_folds[op][dtype] != nullptr;
        CHECK(from_float == (has_kernel && col::core::is_narrow(static_cast<DType>(dtype))));
      }
    }
  }
}

// When one rank cannot start, all end together, and one of them says why.
#pragma once

#include <string>

#include <col/col.hpp>

namespace digits {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Why this rank cannot go on; none when exit_code is 0.
struct Problem {
  int exit_code = 0;
  std::string message;
};

// Collective: tells every rank whether any has a problem. The lowest rank that has one prints it; all get its exit
// code, after it was printed. Returns 0 when nobody has one. Throws col::Error.
int agree(col::Group& world, const Problem& mine);

// "digits_trainer: MESSAGE" on stderr, on one line.
void print_problem(const std::string& message);

}  // namespace digits

// Prints docs/environment.md.
#include <cstdio>

#include "core/env.hpp"

int main() {
  return std::fputs(col::core::env::markdown().c_str(), stdout) < 0 || std::fflush(stdout) != 0;
}

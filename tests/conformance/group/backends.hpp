// The backends that a case runs on: all that this build has and this machine can use, the tests' own excepted.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <col/backend.hpp>

#include "support/catch.hpp"

namespace col::test {

// For host memory.
inline std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (const std::string& name : backend_names()) {
    const BackendFactory& factory = *find_backend(name);
    if (!factory.unavailable_reason() && factory.device() == Device::Type::cpu) names.push_back(name);
  }
#ifdef COL_EXPECT_GLOO
  // A build that has Gloo must not pass because it found nothing to test.
  REQUIRE(std::find(names.begin(), names.end(), "gloo") != names.end());
#endif
  return names;
}

}  // namespace col::test

// The backends that a case runs on: all that this build has and this machine can use, the tests' own excepted.
#pragma once

#include <string>
#include <vector>

#include <col/backend.hpp>

namespace col::test {

inline std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (const std::string& name : backend_names()) {
    if (!find_backend(name)->unavailable_reason()) names.push_back(name);
  }
  return names;
}

}  // namespace col::test

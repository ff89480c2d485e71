// The place of a process in a job that the program describes, and not the environment.
#pragma once

#include <memory>
#include <string>

#include <col/group.hpp>

namespace col::python {

struct Place {
  std::string store;  // a URL
  int rank = 0;
  int world_size = 1;
  std::string token = {};
  std::string job_id = {};
  Duration timeout = {};  // zero: libcol's
};
// Throws what opening the store throws.
ContextSpec meet(const Place& place);

}  // namespace col::python

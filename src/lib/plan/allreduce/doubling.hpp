// What the two forms of bidirectional exchange have in common. Implemented in bde.cpp.
#pragma once

#include <col/plan.hpp>

namespace col::plan::allreduce {

enum class Duplex : unsigned char {
  full,  // partners send to each other at the same time
  half,  // the lower one sends, then the upper one
};

Plan build_doubling(const PlanRequest& request, Duplex duplex);

}  // namespace col::plan::allreduce

// One rank of a job: makes its calls, waits for them, leaves, and notes how it was told.
#pragma once

#include <array>

#include <col/col.hpp>

#include "plan.hpp"

namespace mismatches {

// In memory that the ranks' parent sees.
struct Told {
  bool has_begun = false, has_ended = false;
  bool is_refused = false;  // the call that differs is none that this rank may make
  bool has_error = false;
  col::ErrorCode code = col::ErrorCode::internal;
  int rank = -1;
  double seconds = 0;  // from the begin of the call or the wait
  std::array<char, 16> where = {};
  std::array<char, 700> text = {};
};

void play(const Job& job, int rank, col::Context& context, Told& told);

}  // namespace mismatches

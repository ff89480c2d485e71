// The same small work over and over, to see whether the machine stays as it is.
#pragma once

#include <optional>
#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// How long it takes now: about 2 ms, on this thread.
Probe take_probe();

// "the machine changed its state in 3 of 20 launches: …": these are launches beside which the machine was slower or
// faster by more than a tenth than in the middle of the run. Empty if there are none, or if nothing is known. Pure.
std::string state_text(const Results& results);

// By how much the machine was slower in one of the runs than in the other, by the greater of the probes' two ratios:
// 0.08 for 8 %. Nothing when a run has no probes. Pure.
std::optional<double> state_difference(const Results& a, const Results& b);

}  // namespace col::colbench

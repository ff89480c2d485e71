// The same small work again and again, to see whether the machine changes.
#pragma once

#include <optional>
#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// The time that it takes now: about 2 ms, on this thread.
Probe take_probe();

// "the machine changed its state in 3 of 20 launches: …": these are launches beside which the machine was slower or
// faster by more than a tenth than in the middle of the run. Empty if there are none, or if nothing is known. Pure.
std::string state_text(const Results& results);

// How much slower the machine was in one of the runs than in the other, by the larger of the probes' two ratios: 0.08
// for 8 %. Nothing if a run has no probes. Pure.
std::optional<double> state_difference(const Results& a, const Results& b);

}  // namespace col::colbench

// Measured values as reports write them. All of it pure.
#pragma once

#include <optional>
#include <string>

namespace col::colbench {

// Three digits: "5.21", "52.1", "521". Requires: in [0, 1000); what rounds to 1000 is the next unit's.
std::string three_digits(double value);
// "53.1 ns", "0.53 us", "7.70 ms", "12.3 s": three digits, in the unit that suits it; below 1 us two decimals.
std::string time_text(double seconds);
// The same for each; "-" for nothing, and for what is not finite. ("-" is written so everywhere in reports.)
std::string time_text(std::optional<double> seconds);
// Bytes per second in GB/s (1e9), without the unit: "41.2", "0.532", "<0.001"; "-" for zero.
std::string bandwidth_text(double bytes_per_second);
// A fraction in percent, without the sign: 0.876 is "88", 0.031 is "3.1", 0.00004 is "<0.1"; "-" when it is not finite.
std::string percent_text(double fraction);
// "0x1f".
std::string seed_text(unsigned long long seed);

}  // namespace col::colbench

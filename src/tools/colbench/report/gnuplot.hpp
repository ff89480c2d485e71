// gnuplot as a child process.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace col::colbench {

// Whether `gnuplot` is on PATH.
bool has_gnuplot();
// What to say when it is not.
std::string no_gnuplot_text();

// What gnuplot writes to its stdout for `script`. It reads the script from its stdin and no settings of the user's; no
// shell is involved. Throws tools::UsageError when there is no gnuplot, tools::WriteError when it fails or
// has not ended by the deadline (it is killed then), std::system_error when no process can be started.
std::string run_gnuplot(std::string_view script, std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace col::colbench

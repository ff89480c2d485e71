// The exit codes of the tools: one table, the same as in design and documentation.
#pragma once

namespace col::tools::exit_code {

inline constexpr int kSuccess = 0;
inline constexpr int kUsage = 2;  // the command line is wrong; nothing was started

// colbench and colcheck.
inline constexpr int kWrongData = 1;
inline constexpr int kRankTimeout = 3;  // a rank does not answer
inline constexpr int kRegression = 4;   // slower than the caller allows, or nodes that are unfit
inline constexpr int kRankDied = 5;
inline constexpr int kInvalidMeasurement = 6;  // below the physical bound: such a time cannot be right
inline constexpr int kSkipped = 77;            // nothing could be done here; the output says why

// coljob.
inline constexpr int kStuck = 1;
inline constexpr int kNoJob = 3;  // or one that cannot be looked into

// colrun.
inline constexpr int kTimeout = 124;        // reserved for a time limit of the job
inline constexpr int kLauncher = 125;       // the launcher itself failed
inline constexpr int kNotExecutable = 126;  // the program was found but cannot be executed
inline constexpr int kNotFound = 127;       // the program was not found
inline constexpr int kSignalBase = 128;     // plus the number of the signal that ended the rank
inline constexpr int kOutputClosed = 141;   // the reader of our output is gone (128 + SIGPIPE)

}  // namespace col::tools::exit_code

// The results as JSON: for programs, for `colbench compare`, and as a baseline in CI.
#pragma once

#include <string>
#include <string_view>

#include "colbench/cell/results.hpp"

namespace col::colbench {

// Goes up when a reader of the old form would misread the new one; new members do not.
inline constexpr int kJsonVersion = 1;

// {"schema": "colbench", "schema_version": 1,
//  "run":      {"version", "command": [argv], "started", "launcher", "host", "cpu", "kernel", "governor", "cpus",
//               "ranks", "launches", "seed", "seconds", "target_interval", "sync", "gpus", "nccl", "other_work",
//               "environment": {NAME: value}},
//  "machine":  {"levels": [{"bytes", "alone", "together", "best", "calibrations"}], "hand_over_seconds",
//               "wake_up_seconds", "switch_seconds", "fits": [{"backend", "alpha", "beta", "gamma", "copy",
//                                           "best": [{"bytes", "seconds", "calibrations"}], "best_gamma"}],
//               "node_of_rank": [node by rank; empty when all are on one]},
//  "probes":   [{"spin_ns", "copy_ns"}] before each launch, and after the last one,
//  "cells":    [{"spec":     {"operation", "backend", "algorithm", "device", "dtype", "op", "root", "bytes", "ranks",
//                             "in_place", "cadence", "cache", "groups", "pair": [a, b], "order" (not "any")},
//                "backend", "algorithm", "valid", "below_bound", "fake", "note", "stop",
//                "check":    {"mode", "elements", "wrong", "first"},
//                "bound":    {"ns", "how", "calibrations", "recalibrations"},
//                "model_ns",
//                "stats":    {"n", "p50", "ci_lo", "ci_hi", "p95", "p99", "min", "max", "mad", "outliers", "autocorr",
//                             "skew", "launch_spread", "device_p50", "algbw", "busbw"},
//                "launches": [{"launch", "p50", "late", "ns": [samples], "start_skew_ns": [samples],
//                              "device_ns": [samples]}]}],
//  "warnings": [text], "ended_early", "exit_code"}
//
// A launch is one observation: "p50" is its median. In "stats", "p50" is the median of those, and "ci_lo" to "ci_hi"
// its 95 % interval, null below 6 launches; "launch_spread" is the width of their middle half over "p50". "probes" are
// times of fixed work beside the ranks: where they change, the machine did. "ns" are the host's times, "device_ns" the
// GPUs' own of the same samples, between events around each call; null where they are not known: on the host, and where
// data goes through it. What is "fake" was measured over stand-ins for GPUs, and says nothing of any. "spec" is what
// was asked for; "backend" and "algorithm" beside it are what ran. "valid" is null for what was not measured, else
// true, or the reason why the cell counts for nothing. Times of samples, statistics, bounds and models are in
// nanoseconds, to a tenth of one; those of the machine are in seconds, in full. Bandwidths are bytes per second. In
// "stats" all but n, outliers, autocorr, launch_spread and the bandwidths are nanoseconds; a reader need not look at
// it, it follows from the samples. Seeds are text, "0x1f", as not every reader has 64 bits for a number. A rotating
// root is "rotate". What does not apply, or is not there, is null. Bytes that are not UTF-8 become U+FFFD. Pure.
std::string json_results(const Results& results);

// What json_results() wrote into the regular file at `path`. Unknown members are skipped. Throws tools::UsageError, one
// line that names the file and the member, when it cannot be read, is no JSON, not colbench's, of another version, or
// has not what it should have. Blocks as reading a file does.
Results read_json_results(const std::string& path);
// The same of a text; `name` names it in messages.
Results parse_json_results(std::string_view text, const std::string& name);

}  // namespace col::colbench

// The results in the forms in which they are reported. All functions are pure.
#pragma once

#include <string>

#include "colcheck/report/results.hpp"
#include "colcheck/report/tally.hpp"
#include "common/style.hpp"

namespace col::colcheck {

// ---- For people: the same words for a terminal and for a browser, which has more room (report.cpp)

// The output of colcheck at its end: the GPUs, if cases were about them; tables of primitives and properties, unless
// the run was a --repro; the first 50 failures; what was passed, failed and left out; how to repeat the first failure,
// or else all cases. No newline at the end.
std::string terminal_report(const Results& results, tools::Style style);

// One case when it ends, for --verbose: "✔ TOKEN", "✘ TOKEN: rank 2: what is wrong", "– TOKEN: why it was skipped".
// Without a newline.
std::string result_line(const CaseResult& result, bool utf8);

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts. Shows at most 500
// failures.
std::string html_report(const Results& results);

// ---- For CI servers (junit.cpp)

// A well-formed XML 1.0 document in UTF-8, whatever bytes the results contain. A run that ended early has an error in a
// separate suite. Pure.
std::string junit_report(const Results& results);

// ---- For programs (json.cpp)

// Raised when a reader of the old form would misread the new one. New members do not raise it.
inline constexpr int kJsonVersion = 1;

// {"schema": "colcheck", "schema_version": 1,
//  "run":    {"version", "command", "launcher", "world_size", "host", "cpus", "effort", "seed", "started", "seconds",
//             "backends", "unavailable": [{"name", "why"}], "ranks", "ended_early",
//             "gpus": [{"rank", "name", "bus", "fake"}], "nccl", "limits"},
//  "totals": {"passed", "failed", "skipped", "passed_while_soaking", "holes"},
//  "matrix": {"columns": [{"backend", "device", "fake", "used", "why_not"}],
//             "rows": [{"primitive", "cells": [{"state", "passed", "failed", "skipped"}]}]},
//  "properties": [{"name", "summary", "passed", "failed", "skipped", "backends": {NAME: counts}}],
//  "cases":  [{"token", "verdict", "property", "backend", "ranks", "primitive", "algorithm", "dtype", "op", "count",
//              "root", "in_place", "asynchronous", "memory", "device", "seed", "rank", "text",
//              "smallest": {"token", "text"}}]}
//
// A state is passed, failed, skipped, none (a hole) or unavailable; a verdict is passed, failed or skipped. Seeds are
// text, "0x1f", as not every reader has 64 bits for a number. What does not apply is null: "dtype" of a barrier, "rank"
// when no single one is to blame. A device is cpu, cuda or mixed; what is fake comes of stand-ins for GPUs. Nothing of
// the environment is in it. Bytes that are not UTF-8 become U+FFFD.
std::string json_report(const Results& results);

}  // namespace col::colcheck

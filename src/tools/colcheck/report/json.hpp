// The results as JSON, for programs.
#pragma once

#include <string>

#include "colcheck/results.hpp"

namespace col::colcheck {

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
// the environment is in it. Bytes that are not UTF-8 become U+FFFD. Pure.
std::string json_report(const Results& results);

}  // namespace col::colcheck

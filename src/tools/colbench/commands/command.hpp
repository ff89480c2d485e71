// What every command of colbench gets, and how it prints and writes its results.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/commands/options.hpp"
#include "common/report.hpp"
#include "common/screen.hpp"
#include "common/write_file.hpp"

namespace col::colbench {

struct Invocation {
  std::vector<std::string> arguments;  // after the command's own name
  tools::Screen screen;
  Measure measure;  // measures, in its own ranks or in existing ones
};

// For "did you mean": main.cpp has what each does.
inline constexpr std::array<std::string_view, 11> kCommandNames = {
    "compare", "noise", "algorithms", "tune", "explain", "simulate", "draw", "pairs", "nodes", "self-test", "help"};

// Each returns the exit code, and prints its results to stdout. Throws UsageError, col::Error, std::system_error,
// tools::WriteError; main() prints them in one line.
int run_compare(const Invocation& invocation);     // colbench compare A.json B.json
int run_noise(const Invocation& invocation);       // colbench noise [COLL]
int run_algorithms(const Invocation& invocation);  // colbench algorithms COLL
int run_tune(const Invocation& invocation);
int run_explain(const Invocation& invocation);
int run_simulate(const Invocation& invocation);
int run_draw(const Invocation& invocation);
int run_pairs(const Invocation& invocation);
int run_nodes(const Invocation& invocation);
// Measures a backend that does nothing, with and without a check of its results. The check must refuse the first, and
// the physical bound must refuse the second.
int run_self_test(const Invocation& invocation);
// Makes that backend known under the name "idle", once; every rank that measures must know it.
void register_idle_backend();

// Lines that are longer than `columns` in several, indented, at spaces. Tables and pictures, which have several spaces
// together and know how wide they may be, stay as they are.
std::string with_sentences_wrapped(std::string_view text, std::size_t columns);

// Prints all of `text` at once; on a terminal, no sentence is wider. Throws tools::OutputClosed if stdout does not take
// it.
void print(const std::string& text);
// Prints as much as stderr takes.
void print_error(const std::string& text);

// ---- The end of every command that measures -------------------------------------------------------------------------

// Throws UsageError if one of the files could not be written; called before anything is measured.
void check_outputs(const Output& output);

// Writes the files. Returns the exit code: that of the results, or 2 if a file cannot be written, which it reports.
// `own` is what the command adds to the page.
int write_outputs(const Results& results, const Output& output, const tools::Part& own = {});

// write_outputs(), then prints `text`: a failure to print must not lose the files. Throws tools::WriteError.
int finish(const Results& results, const Output& output, const std::string& text, const tools::Part& own = {});

// finish() with the table.
int report(const Results& results, const Output& output, const tools::Screen& screen);

}  // namespace col::colbench

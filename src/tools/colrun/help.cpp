#include "colrun/help.hpp"

#include <vector>

#include <fmt/format.h>

#include "colrun/option_table.hpp"
#include "common/command_line.hpp"

namespace col::colrun {
namespace {

constexpr const char* kUsage =
    "Runs a program as several ranks, on this machine or on several.\n"
    "Usage: colrun [options] [--] program [arguments] [: [-n N] [-x V=v] program [arguments]]...\n";

constexpr const char* kExamples =
    "Examples: colrun -n 4 ./my_trainer --epochs 3\n"
    "          colrun -n 2 --label sh -c 'echo rank $COL_RANK of $COL_WORLD_SIZE'\n"
    "Exit code: that of the first rank that failed (128 + signal), else 0; man colrun has the others.";

constexpr const char* kMore =
    "TIME: 90, 90s, 500ms, 5m, 1h.  LIST of ranks: 0,3-5.\n"
    "PATTERN: %r rank, %R the same with zeros in front, %l local rank, %n node rank, %w world size,\n"
    "         %h host, %j job id, %g restarts so far, %s stream (out or err), %% a percent sign.\n"
    "A lone ':' ends a program and begins the next; '\\:' is an argument that is a colon.\n"
    "Every option is also a variable (--max-restarts 2: COLRUN_MAX_RESTARTS=2; flags: 1, 0, yes, no)\n"
    "and a line of the file that --config or COLRUN_CONFIG names (max-restarts = 2). The command line\n"
    "wins over variables, these over the file; --no-FLAG switches off what they have switched on.\n"
    "Exit code: 0 when all ranks return 0, else that of the first rank that failed on its own (128 +\n"
    "signal when a signal killed it); 2 usage, 124 time is up, 125 colrun failed, 126 not executable,\n"
    "127 not found, 141 the output's reader is gone.";

}  // namespace

std::string help_text(HelpExtent extent, int default_ranks) {
  const bool all = extent == HelpExtent::all;
  std::vector<tools::OptionRow> rows;
  for (const OptionRow& row : option_rows()) {
    if (row.shown == OptionRow::Shown::nowhere || (row.shown == OptionRow::Shown::all && !all)) continue;
    tools::OptionRow& shown = rows.emplace_back(row.in_help());
    if (row.option == Option::ranks_per_node) shown.text += fmt::format(" (here {})", default_ranks);
  }
  constexpr std::size_t kWidth = 34;
  return fmt::format("{}{}\n{}\n", kUsage, tools::options_text(rows, kWidth), all ? kMore : kExamples);
}

}  // namespace col::colrun

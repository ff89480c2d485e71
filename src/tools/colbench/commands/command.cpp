#include "colbench/commands/command.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "colbench/report/json.hpp"
#include "colbench/report/report.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kLeastColumns = 40;

}  // namespace

std::string with_sentences_wrapped(std::string_view text, std::size_t columns) {
  std::string all;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool is_sentence = line.find('#') < 6 || line.find("  ") == std::string_view::npos;  // behind a colour
    all += is_sentence && tools::columns_of(line) > columns ? tools::wrapped(line, columns, 0, 2) : std::string(line);
    if (end == std::string_view::npos) break;
    all += '\n';
    text.remove_prefix(end + 1);
  }
  return all;
}

void print(const std::string& text) {
  const auto columns = tools::stdout_columns();
  tools::print(columns ? with_sentences_wrapped(text, *columns) : text);
}

void print_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

void check_outputs(const Output& output) {
  std::set<std::string> known;
  for (const std::string* path : {&output.json, &output.csv, &output.plot, &output.html}) {
    if (*path == "-") throw UsageError("a file needs a name; to print one instead of the table there is /dev/stderr");
    if (!path->empty() && !known.insert(*path).second)
      throw UsageError("{} is named twice; one file can hold one thing", *path);
  }
  for (const std::string* path : {&output.json, &output.csv, &output.plot, &output.html}) {
    if (path->empty()) continue;
    try {
      tools::check_writable(*path);
    } catch (const tools::WriteError& error) {
      throw UsageError(error.what());
    }
  }
  if (!output.plot.empty()) check_plot("--plot", output.plot);
}

int write_outputs(const Results& results, const Output& output, const tools::Part& own) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader of a FIFO may leave; that is an error with a text
  bool good = true;
  const auto write = [&good](const std::string& path, const std::function<void()>& writing) {
    if (path.empty()) return;
    try {
      writing();
    } catch (const std::exception& error) {
      print_error(fmt::format("colbench: {}\n", error.what()));
      good = false;
    }
  };
  write(output.json, [&] { tools::write_file(output.json, json_results(results)); });
  write(output.csv, [&] { tools::write_file(output.csv, csv_results(results)); });
  write(output.plot, [&] { tools::write_file(output.plot, plot_svg(results)); });
  write(output.html, [&] { tools::write_file(output.html, html_page(report_of(results, own))); });
  return good || results.exit_code != tools::exit_code::kSuccess ? results.exit_code : tools::exit_code::kUsage;
}

int finish(const Results& results, const Output& output, const std::string& text, const tools::Part& own) {
  const int code = write_outputs(results, output, own);
  print(text);
  return code;
}

int report(const Results& results, const Output& output, const tools::Screen& screen) {
  tools::Style style = screen.style();
  style.columns = std::clamp(tools::stdout_columns().value_or(kTableColumns), kLeastColumns, kTableColumns);
  return finish(results, output, table_report(results, style, output.legend));
}

}  // namespace col::colbench

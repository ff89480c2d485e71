// The command line of colbench: the options that say what is measured and how, for every command that measures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "common/command_line.hpp"
#include "common/guarded.hpp"
#include "common/option_readers.hpp"

namespace col::colbench {

using tools::UsageError;

// This machine cannot do what was requested.
class Unavailable : public tools::ToolError {
 public:
  explicit Unavailable(const std::string& why)
      : ToolError(tools::exit_code::kSkipped, "skipped: {}; leave --backend and --device out to measure what there is",
                  why) {}
};

// Where results go, in addition to the terminal; empty: nowhere.
struct Output {
  std::string json = {}, csv = {}, html = {}, plot = {};
  bool legend = false;   // explain the columns
  bool progress = true;  // a line on a terminal that shows the progress
};

enum class BoundMode : std::uint8_t { strict, warn, off };  // how to treat a time below the physical bound

// The values of the measuring options: every combination of these is a cell.
struct Request {
  std::vector<Operation> operations = {};
  std::vector<std::size_t> sizes = {};  // ascending
  std::vector<std::string> backends = {"auto"};
  std::vector<std::string> algorithms = {"auto"};  // "all": every one that can serve the cell
  Device::Type device = Device::Type::cpu;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  std::vector<int> roots = {0};
  std::vector<bool> in_place = {false};
  std::vector<col::Order> orders = {col::Order::any};
  std::vector<Cadence> cadences = {Cadence::isolated};
  CacheState cache = CacheState::hot;
  std::string groups = {};
  bool allow_single = false;
  BoundMode bound = BoundMode::strict;
  Method method = {};
  Output output = {};
};

// A command's options. Usage: make one, add what the command takes, parse(), then read request().
class CommandLine : public tools::OptionTable {
 public:
  // `command` is "colbench noise". `usage`, `footer` and `brief` are for --help, as in HelpTexts.
  CommandLine(std::string command, std::string usage, std::string footer, std::string brief = {});
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Parts that a command may take. Each may be called once, before parse().
  // What -o means: nccl-tests' reduction, or the command's own file.
  enum class Letter : std::uint8_t { op, output };
  void add_cells(Letter o = Letter::op);  // --size --sizes --backend --device --algo --dtype --op --root --place
                                          // --order --cadence --cache --groups
  // How a command reads -n that has its own way to; -b leaves it alone then.
  using ReadRanks = std::function<int(const std::string& option, const std::string& text)>;
  // -n --launches --ci --min-iters --max-time --seed --no-shuffle --sync --check --skew --delay --timeout --bound
  // --quiet
  void add_method(ReadRanks read_ranks = {});
  void add_outputs();  // --json --csv --plot --html --legend --no-progress
  // An option whose value is kept as it was written.
  void add_option(std::string_view group, std::string_view names, std::string& value, std::string_view type,
                  std::string text);

  // Returns false if a text (--help, --version) was printed instead. Throws UsageError; Unavailable for a backend or
  // device that cannot be used here.
  bool parse(const std::vector<std::string>& arguments, std::size_t most_words);
  bool given(std::string_view name) const { return values().has(name); }
  Request& request() { return request_; }

 private:
  Request request_;
  bool has_cells_ = false, has_method_ = false;
  ReadRanks read_ranks_ = {};
};

// All that parse_operations() knows.
std::vector<std::string_view> operation_words();
// "allreduce,broadcast", "all". Throws UsageError with the nearest name.
std::vector<Operation> parse_operations(const std::string& text);
// "32M", "1K,3M", "8:256M:x2", "8:1M:+64K". Throws UsageError.
std::vector<std::size_t> parse_sizes(const std::string& text);

// "3%", "0.5%": 0.03, 0.005. From 0% to 1000%. Throws UsageError that names the option.
double parse_percent(const std::string& option, const std::string& text);
// "3 bytes are measured as 4: …", if a size is not whole elements on every rank; else empty.
std::string rounding_note(const Request& request);
// Every combination, in the order in which a reader wants them. Throws UsageError if there is none, or for cells that
// could never be measured (more memory than the machine has).
std::vector<CellSpec> cells_of(const Request& request);

}  // namespace col::colbench

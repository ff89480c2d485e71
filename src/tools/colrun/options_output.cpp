// Where output goes and input comes from.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"
#include "common/numbers.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;

constexpr std::string_view kFile = "file=";
constexpr std::string_view kDefaultLabel = "[%r] ";

std::string read_file_pattern(const Given& given) {
  if (!given.text.starts_with(kFile) || given.text.size() == kFile.size())
    refuse(given, "file=PATTERN, such as file=run/%R.%s");
  return read_pattern(given, given.text.substr(kFile.size()));
}

launch::InputSpec read_input(const Given& given) {
  using To = launch::InputSpec::To;
  if (given.text == "all") return {To::all, 0};
  if (given.text == "none") return {To::none, 0};
  const auto rank = tools::parse_whole_number(std::string_view(given.text), 0, kMaxRank);
  if (!rank) refuse(given, "a rank, all or none");
  return {To::rank, *rank};
}

std::vector<int> read_console_ranks(const Given& given) {
  const auto ranks = parse_numbers(given.text, kMaxRank);
  if (!ranks) refuse(given, "ranks such as 0,3-5");
  return *ranks;
}

}  // namespace

std::vector<OptionRow> output_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"-l,--label", "", nothing, everyday, "begin every line with its rank: [3] line",
       [](const Given&, JobSpec& job) { job.output.label = kDefaultLabel; }},
      {"--label-format", "PATTERN", value, all, "begin every line with this: '%h/%l: '",
       [](const Given& given, JobSpec& job) { job.output.label = read_pattern(given, given.text); }},
      {"--timestamp", "", nothing, everyday, "begin every line with the time",
       [](const Given&, JobSpec& job) { job.output.timestamps = true; }},
      {"--output", "file=PATTERN", value, everyday, "output goes to files: file=run/%R.%s (letters: --help-all)",
       [](const Given& given, JobSpec& job) { job.output.file_pattern = read_file_pattern(given); }},
      {"--tee", "", nothing, everyday, "with --output: to the console as well",
       [](const Given&, JobSpec& job) { job.output.tee = true; }, Option::tee},
      {"--ranks", "LIST", value, everyday, "show the output of these ranks only: 0,3-5",
       [](const Given& given, JobSpec& job) { job.output.console_ranks = read_console_ranks(given); },
       Option::console_ranks},
      {"--merge", "", nothing, all, "stderr of a rank joins its stdout, in the order written",
       [](const Given&, JobSpec& job) { job.output.merge = true; }},
      {"--stdin", "WHO", value, everyday, "who reads standard input: a rank, all, none; default: 0",
       [](const Given& given, JobSpec& job) { job.input = read_input(given); }, Option::standard_input},
      {"--pty", "", nothing, all, "ranks write to a pseudo-terminal, as if nothing were between",
       [](const Given&, JobSpec& job) { job.output.pty = true; }},
      {"-u,--unbuffered", "", nothing, all, "set PYTHONUNBUFFERED=1: Python's output comes at once", nullptr,
       Option::unbuffered},
  };
}

}  // namespace col::colrun

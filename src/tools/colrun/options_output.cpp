// Where output goes and input comes from.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"
#include "common/numbers.hpp"

namespace col::colrun {
namespace {

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

}  // namespace

void read_output(const Values& values, launch::JobSpec& spec) {
  launch::OutputSpec& output = spec.output;
  if (values.is_on(Option::label)) output.label = kDefaultLabel;
  if (const Given* given = values.find(Option::label_format)) output.label = read_pattern(*given, given->text);
  output.timestamps = values.is_on(Option::timestamp);
  if (const Given* given = values.find(Option::output)) output.file_pattern = read_file_pattern(*given);
  output.tee = values.is_on(Option::tee);
  if (const Given* given = values.find(Option::console_ranks)) {
    const auto ranks = parse_numbers(given->text, kMaxRank);
    if (!ranks) refuse(*given, "ranks such as 0,3-5");
    output.console_ranks = *ranks;
  }
  output.merge = values.is_on(Option::merge);
  output.pty = values.is_on(Option::pty);
  if (const Given* given = values.find(Option::standard_input)) spec.input = read_input(*given);
}

}  // namespace col::colrun

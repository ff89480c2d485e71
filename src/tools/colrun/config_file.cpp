#include "colrun/config_file.hpp"

#include <fmt/format.h>

#include "colrun/text_lines.hpp"

namespace col::colrun {
namespace {

void add_line(Values& values, std::string_view line, const std::string& place) {
  const std::size_t equals = line.find('=');
  const std::string key(trimmed(line.substr(0, equals)));
  const OptionRow* row = find_setting(key);
  if (row == nullptr && find_option("--" + key) != nullptr)
    throw UsageError(fmt::format("{}: {} is for the command line only", place, key));
  if (row == nullptr) throw UsageError(fmt::format("{}: unknown option '{}'{}", place, key, did_you_mean_key(key)));
  if (equals == std::string_view::npos)
    throw UsageError(
        fmt::format("{}: {} has no value; write '{} = {}'", place, key, key, row->is_flag() ? "yes" : row->value));
  const auto text = unquoted(trimmed(line.substr(equals + 1)));
  if (!text)
    throw UsageError(fmt::format("{}: the quotes of {} do not match; write one pair around all of it", place, key));
  if (text->empty()) throw UsageError(fmt::format("{}: {} has no value; give it one, or remove the line", place, key));
  Given given{Source::config_file, fmt::format("{}: {}", place, key), *text};
  if (row->is_flag()) given.text = flag_text(given);
  values.add(*row, std::move(given));
}

}  // namespace

Values parse_config(std::string_view text, const std::string& path) {
  Values values;
  each_line(text,
            [&](int number, std::string_view line) { add_line(values, line, fmt::format("{}:{}", path, number)); });
  return values;
}

std::string flag_text(const Given& given) {
  if (given.text == "1" || given.text == "yes") return "1";
  if (given.text == "0" || given.text == "no") return "0";
  refuse(given, "1, 0, yes or no");
}

}  // namespace col::colrun

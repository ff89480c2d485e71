#include "common/command_line.hpp"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <col/select.hpp>

#include "common/version.hpp"

namespace col::tools {
namespace {

class Help : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return usage_ + "\n"; }

 private:
  std::string usage_;
};

[[noreturn]] void refuse_unknown(const CLI::App& app, std::string_view name) {
  const std::vector<std::string> all = option_names(app);
  const std::vector<std::string_view> names(all.begin(), all.end());
  // One letter is near to every other one.
  const std::string_view nearest = name.size() > 2 ? nearest_name(name, names) : std::string_view();
  throw UsageError(
      fmt::format("unknown option '{}'{}", name, nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

}  // namespace

CLI::Option* add_option(CLI::App& app, const char* group, const std::string& name, std::string& value, const char* type,
                        const std::string& description) {
  return app.add_option(name, value, description)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(group);
}

CLI::Option* add_flag(CLI::App& app, const char* group, const std::string& name, const std::string& description) {
  return app.add_flag(name, description)->disable_flag_override()->group(group);
}

void add_help(CLI::App& app, const char* group, const std::string& usage, const std::string& footer) {
  app.formatter(std::make_shared<Help>(usage));
  app.get_formatter()->column_width(26);
  app.footer(footer);
  app.set_help_flag("-h,--help", "print this text and end")->group(group);
  app.set_version_flag("--version", version_line(app.get_name()), "print the version and end")->group(group);
}

// CLI11 leaves one or two empty lines between groups, depending on its version.
std::string help_of(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t gap; (gap = text.find("\n\n\n")) != std::string::npos;) text.erase(gap, 1);
  return text;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> join_values(const CLI::App& app, const std::vector<std::string>& arguments,
                                     std::size_t most_words) {
  std::vector<std::string> joined;
  std::size_t words = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") {
      if (words++ == most_words) {
        throw UsageError(fmt::format("unexpected argument '{}'{}", argument,
                                     most_words == 0 ? fmt::format("; {} takes options only", app.get_name()) : ""));
      }
      joined.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) refuse_unknown(app, name);
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value && equals != std::string::npos) throw UsageError(fmt::format("{} takes no value", name));
    // CLI11 knows "-n=4" as the value "=4".
    const std::string long_name = option->get_lnames().empty() ? name : "--" + option->get_lnames().front();
    joined.push_back(equals == std::string::npos ? long_name : long_name + argument.substr(equals));
    if (!takes_value) continue;
    if (equals == std::string::npos) {
      const bool last = i + 1 == arguments.size();
      if (last || app.get_option_no_throw(arguments[i + 1]) != nullptr) {
        throw UsageError(fmt::format("{} needs a value", name));
      }
      joined.back() += "=" + arguments[++i];
    }
    if (joined.back().size() == long_name.size() + 1) throw UsageError(fmt::format("{} needs a value", name));
  }
  return joined;
}

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0) throw std::system_error(errno, std::generic_category(), "cannot find the path of the program itself");
  return {path.data(), static_cast<std::size_t>(length)};
}

}  // namespace col::tools

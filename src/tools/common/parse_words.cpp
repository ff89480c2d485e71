// The seam to CLI11, which no other file of the tools includes. CLI11 divides a command line into options, their values
// and what is left. The rows say which options there are, and all messages are ours.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/command_line.hpp"
#include "common/gone.hpp"

namespace col::tools {
namespace {

// No argument contains this. Words get it, with a second character, where CLI11 would read them otherwise than we do:
// "--np=" would take the next word for its value, "-n=4" has the value "=4", and "-size 8" would be "-s" with "ize".
constexpr char kMark = '\0';
// Behind the last word: the value of an option that has none.
constexpr std::string_view kEnd("\0", 1);
// Ends the name by which CLI11 knows "-np": it would read "-n" with "p".
constexpr char kNamed = '\xff';

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

std::string without_mark(std::string word) {
  if (const std::size_t mark = word.find(kMark); mark != std::string::npos) word.erase(mark, 2);
  return word;
}

// "unknown option '--nup'; did you mean '--np'?"
std::string unknown_option(std::string_view name, const Rows& rows) {
  std::vector<std::string_view> known;
  // A name of one letter is near to every other one.
  const auto add_long = [&](std::string_view each) {
    if (each.size() > 2) known.push_back(each);
  };
  for (const OptionRow& row : rows) {
    if (!row.group.empty()) std::ranges::for_each(row.all_names(), add_long);
  }
  return fmt::format("unknown option '{}'{}", name, name.size() > 2 ? did_you_mean(name, known) : "");
}

// One of the names of a row.
struct Name {
  const OptionRow* row;
  std::string said_as;
  bool off = false;       // --no-FLAG
  std::size_t taken = 0;  // how many of its results
};

class Parser {
 public:
  Parser(const Rows& rows, const Grammar& grammar) : rows_(rows), grammar_(grammar) {
    app_.set_help_flag();
    app_.allow_extras();
    app_.prefix_command(grammar.before_program);
    for (const OptionRow& row : rows) {
      for (const std::string_view name : row.all_names()) add(std::string(name), {&row, std::string(name)});
    }
  }

  Parsed run(const std::vector<std::string>& arguments, const std::vector<Setting>& settings) {
    std::vector<std::string> words;
    for (const Setting& setting : settings) words.push_back(word_of(setting));
    for (const std::string& argument : arguments) words.push_back(marked(argument));
    words.emplace_back(kEnd);
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app_.parse(words);
    } catch (const CLI::Error& error) {
      throw UsageError("{}", error.what());
    }
    std::vector<std::string> rest = rest_of(arguments);
    Parsed parsed{Values(rows_), std::move(rest)};
    auto setting = settings.begin();
    for (const CLI::Option* option : app_.parse_order()) {
      Name& name = names_.at(option);
      const std::string& result = option->results().at(name.taken++);
      if (setting == settings.end()) {
        take(name, result, parsed.values);
      } else {
        parsed.values.add(*setting->row, setting->given);
        ++setting;
      }
    }
    return parsed;
  }

 private:
  void add(const std::string& known_as, Name name) {
    CLI::Option* option = name.row->is_flag() ? app_.add_flag(known_as) : app_.add_option(known_as);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    names_.emplace(option, std::move(name));
    known_.push_back(known_as);
  }

  bool is_known(const std::string& name) const { return std::ranges::count(known_, name) > 0; }

  // Adds `name` to those that CLI11 knows if it is another spelling. Returns what CLI11 knows it by.
  std::string known_as(const std::string& name) {
    const auto also = std::ranges::find(grammar_.also, std::string_view(name), &Pair::first);
    const bool other = also != grammar_.also.end();
    const std::string known = other && !name.starts_with("--") ? "-" + name + kNamed : name;
    if (!grammar_.before_program || is_known(known)) return known;
    const std::string plain = other ? std::string(also->second) : with_dashes(name);
    const OptionRow* row = find_option(rows_, plain);
    const bool off = row == nullptr && plain.starts_with("--no-");
    if (off) row = find_option(rows_, "--" + plain.substr(5));
    const bool good = row != nullptr && (!off || (row->is_flag() && row->is_setting()));
    if (good && known.starts_with("--")) add(known, {row, name, off});
    return known;
  }

  std::string marked(const std::string& word) {
    if (!is_option(word)) return word;
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals), rest = word.substr(equals);
    const std::string known = known_as(name);
    if (rest.empty() && (known != name || name.starts_with("--"))) return known;
    if (known.starts_with("--")) return known + "=" + kMark + "=" + rest.substr(1);
    if (is_known("-" + name)) return std::string{'-', kMark, '-'} + word.substr(1);  // "-size"
    return rest.empty() ? word : name + kMark + name.back() + rest;
  }

  std::string word_of(const Setting& setting) {
    const std::string key(setting.row->key());
    if (!setting.row->is_flag()) return marked(fmt::format("--{}={}", key, setting.given.text));
    return marked((setting.given.text == "1" ? "--" : "--no-") + key);
  }

  // Returns the words that belong to no option. Throws UsageError for one that looks like an option.
  std::vector<std::string> rest_of(const std::vector<std::string>& arguments) const {
    std::vector<std::string> rest = app_.remaining();
    if (!rest.empty() && rest.back() == kEnd) rest.pop_back();
    const auto end = grammar_.before_program ? rest.begin() + (rest.empty() ? 0 : 1) : std::ranges::find(rest, "--");
    for (auto word = rest.begin(); word != end; ++word) {
      const std::string plain = without_mark(*word);
      if (is_option(plain)) refuse(*word, plain.substr(0, plain.find('=')));
    }
    if (grammar_.before_program) return {arguments.end() - static_cast<std::ptrdiff_t>(rest.size()), arguments.end()};
    std::ranges::transform(rest, rest.begin(), without_mark);
    return rest;
  }

  [[noreturn]] void refuse(const std::string& word, const std::string& name) const {
    if (word[1] == kMark && word[2] != '-') throw UsageError("-{} takes no value", word[2]);
    if (const std::string gone = gone_text(grammar_.tool, name); !gone.empty()) throw UsageError(gone);
    const auto instead = std::ranges::find(grammar_.instead, std::string_view(name), &Pair::first);
    if (instead == grammar_.instead.end()) throw UsageError("{}", unknown_option(name, rows_));
    throw UsageError("unknown option '{}': {}", name, instead->second);
  }

  void take(const Name& name, const std::string& result, Values& values) const {
    const OptionRow& row = *name.row;
    const bool joined = result.size() > 1 && result[0] == kMark;
    if (row.is_flag()) {
      if (joined) throw UsageError("{} takes no value", name.said_as);
      if (!grammar_.before_program && !values.all(row).empty())
        throw UsageError(given_twice(values.all(row).front().said_as, name.said_as));
      return values.add(row, {Source::command_line, name.said_as, name.off ? "0" : "1"});
    }
    std::string text = joined ? result.substr(name.said_as.size() == 2 ? 3 : 2) : without_mark(result);
    if (!joined && is_known(result.substr(0, result.find('=')))) text.clear();  // the next option, as "-n --json x"
    if (text.empty()) throw UsageError("{0} needs a value: {0} {1}", name.said_as, row.value);
    values.add(row, {Source::command_line, name.said_as, std::move(text)});
  }

  const Rows& rows_;
  const Grammar& grammar_;
  CLI::App app_;
  std::map<const CLI::Option*, Name> names_;
  std::vector<std::string> known_;
};

}  // namespace

Parsed parse_words(const Rows& rows, const std::vector<std::string>& arguments, const Grammar& grammar,
                   const std::vector<Setting>& settings) {
  return Parser(rows, grammar).run(arguments, settings);
}

}  // namespace col::tools

#include "coljob/options.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"

namespace col::coljob {
namespace {

using Command = Options::Command;
using tools::UsageError;

constexpr std::string_view kPatience = "2s";

constexpr const char* kHead =
    "coljob: looks into the running jobs of this user that this host is part of\n"
    "\n"
    "Usage:\n"
    "  coljob ps            the jobs: command, ranks, since when, state\n"
    "  coljob why [JOB]     who waits for whom, and why: a sentence and a table\n"
    "  coljob top [JOB]     a live view: rates, waiting, memory and CPU of each rank\n"
    "  coljob stacks [JOB]  where each rank is in its program\n"
    "  coljob dump [JOB]    all that is known, as JSON, with 1,024 operations a rank\n"
    "  coljob why FILE      the same from such a file, or a report of colrun\n"
    "\n"
    "JOB is a part of a job's id that no other job has, or the pid of one of its\n"
    "ranks. It may be left out when there is one job.";

constexpr const char* kFooter =
    "Exit code: 0 healthy; 1 stuck; 2 usage; 3 no such job, or one that cannot be looked into.";

const tools::OneOf<Command> kCommands = {{{"ps", Command::ps},
                                          {"why", Command::why},
                                          {"top", Command::top},
                                          {"stacks", Command::stacks},
                                          {"dump", Command::dump}}};

Command command_of(const std::string& word) {
  const auto found =
      std::ranges::find(kCommands.known, std::string_view(word), &std::pair<std::string_view, Command>::first);
  if (found != kCommands.known.end()) return found->second;
  const std::string near = tools::did_you_mean(word, kCommands.choices());
  throw UsageError("there is no command '{}'{}", word,
                   near.empty() ? fmt::format("; write {}", tools::alternatives(kCommands.choices())) : near);
}

std::string folder_of(tools::Word& option, tools::Word& text) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(text, ignored)) tools::refuse(option, text, "a folder that is there");
  return text;
}

}  // namespace

std::variant<std::string, Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  options.patience = *tools::parse_duration(kPatience);
  tools::OptionTable table({.tool = "coljob", .head = kHead, .footer = kFooter, .brief = kFooter});
  table.add({"Options", "--dir", "DIR", "look for jobs there too: the TMPDIR of a job, if it differs from this one",
             tools::added_to(options.directories, folder_of), tools::HelpExtent::everyday, true});
  table.add(
      {"Options", "--after", "TIME", fmt::format("a wait that has lasted for longer is a hang (default {})", kPatience),
       tools::into(options.patience, tools::parsed_by(tools::parse_duration, "a time such as 500ms, 10s or 5m"))});
  table.add({"Options", "--json", "", "why: print the finding as JSON", tools::becomes(options.json, true)});
  table.add({"Options", "-o,--output", "FILE", "dump: write to FILE in place of stdout",
             tools::into(options.output, tools::as_written)});
  table.offer({"<job>", "<file>"});
  if (arguments.size() < 2) table.offer(kCommands.choices());
  if (auto text = table.parse(arguments, 2)) return std::move(*text);
  table.values().apply();
  if (table.words().empty()) throw UsageError("no command; write {}", tools::alternatives(kCommands.choices()));
  options.command = command_of(table.words().front());
  if (table.words().size() > 1) options.job = table.words()[1];
  if (table.words().size() > 1 && options.job.empty())
    throw UsageError("the job's name is empty; leave it out, or take one that coljob ps shows");
  if (options.command == Command::ps && !options.job.empty())
    throw UsageError("ps shows all jobs; for one of them write: coljob why {}", options.job);
  if (options.json && options.command != Command::why) throw UsageError("--json is an option of why; see also dump");
  if (!options.output.empty() && options.command != Command::dump)
    throw UsageError("{} is an option of dump", table.values().find("-o")->said_as);
  return options;
}

}  // namespace col::coljob

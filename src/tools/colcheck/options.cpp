#include "colcheck/options.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <col/select.hpp>

#include "common/command_line.hpp"
#include "common/gpu.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"

namespace col::colcheck {
namespace {

constexpr auto kRare = tools::HelpExtent::all;  // not in --help
constexpr const char* kBrief =
    "Example: colcheck --only exact --np 3,5. Exit code: 0 all passed; 1 a case failed; 2 usage; 77 nothing could be "
    "checked.";
constexpr const char* kExamples =
    "Examples:\n"
    "  colcheck                              is every primitive right here?\n"
    "  colcheck --full --junit results.xml   the same, thoroughly, for a CI server\n"
    "  colcheck --only exact --backend gloo --np 3,5 --algo ring\n"
    "  colcheck --device cuda                memory of GPUs alone\n"
    "  colcheck --repro 'exact,backend=shm,np=3,coll=allreduce,seed=0x1f'\n"
    "  mpirun -n 4 colcheck                  in the ranks that are there already\n"
    "\n"
    "Exit code: 0 every case passed; 1 a case failed; 2 usage, what --require names cannot be used, or an output that\n"
    "cannot be written; 3 time is up; 5 a rank died; 77 nothing could be checked; 125 the ranks could not be\n"
    "started; 141 the output's reader is gone.\n"
    "A skipped case is never counted as a pass.";

// ---- Values

using Names = std::vector<std::string>;

Names backends() {
  return {std::string(to_string(Backend::shm)),
          std::string(to_string(Backend::gloo)),
          "hosts",
          "ucx",
          "hosts_ucx",
          tools::device_backend()};
}

constexpr auto names_in = [](tools::Word& option, tools::Word& text) {
  return tools::parsed_by(tools::parse_list, "names with single commas between them")(option, text);
};

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_names(std::string_view option, std::string_view kind, const Names& list, const Names& known,
                 std::string_view otherwise) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& name : list) {
    if (has(known, name)) continue;
    const std::string_view nearest = nearest_name(name, names);
    throw UsageError("{}: there is no {} '{}'; {}", option, kind, name,
                     nearest.empty() ? std::string(otherwise) : fmt::format("did you mean '{}'?", nearest));
  }
}

void check_properties(std::string_view option, const Names& list, std::span<const Property* const> known) {
  Names names;
  for (const Property* property : known) names.emplace_back(property->name);
  check_names(option, "property", list, names, "colcheck --list names them all");
}

Names backends_of(const std::string& option, const std::string& text) {
  if (text == "all") return {};
  Names named = names_in(option, text);
  check_names(option, "backend", named, backends(), "write all, or some of shm,gloo,hosts,ucx,hosts_ucx,nccl");
  return named;
}

Names required_of(const std::string& option, const std::string& text) {
  Names names = backends();
  names.insert(names.end(), {"cpu", "cuda"});
  Names required = names_in(option, text);
  check_names(option, "backend or device", required, names, "write some of shm,gloo,hosts,ucx,hosts_ucx,nccl,cpu,cuda");
  return required;
}

Names properties_of(const std::string& option, const std::string& text, std::span<const Property* const> known) {
  Names list = names_in(option, text);
  check_properties(option, list, known);
  return list;
}

Names algorithms_of(const std::string& option, const std::string& text) {
  Names list = names_in(option, text);
  for (const std::string& algorithm : list) {
    try {
      AlgorithmSpec::parse(algorithm);
    } catch (const Error&) {
      tools::refuse(option, algorithm, "names such as ring or knomial:radix=3");
    }
  }
  return list;
}

Case repro_of(const std::string& option, const std::string& text, std::span<const Property* const> known) {
  Case repro;
  try {
    repro = parse_token(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError("{}: {}", option, error.what());
  }
  check_properties(option, {repro.property}, known);
  if (repro.ranks > tools::kMaxRanks)
    throw UsageError("{}: np={} is more than {} ranks", option, repro.ranks, tools::kMaxRanks);
  return repro;
}

void check_left(const Options& options, std::span<const Property* const> known) {
  if (options.device == Options::Device::cpu && options.backends == Names{tools::device_backend()})
    throw UsageError("--device cpu leaves nothing of --backend nccl, which needs GPUs; leave one of them out");
  for (const Property* property : known) {
    if (has(options.only, property->name) && property->kind == Property::Kind::fault && !options.faults)
      throw UsageError("--only: '{}' harms ranks on purpose; add --faults to allow it", property->name);
  }
  if (!options.fault_start.empty() && !options.faults && !options.repro)
    throw UsageError("--fault-start is about drills; add --faults, or leave it out");
  const auto chosen = chosen_properties(options, known);
  if (chosen.empty()) throw UsageError("--only and --skip leave no property to check; colcheck --list names them all");
  if (options.device == Options::Device::cuda &&
      std::all_of(chosen.begin(), chosen.end(), [](const Property* p) { return p->on_gpus == OnGpus::nothing; }))
    throw UsageError("--device cuda leaves no property to check: none of those asked for is about GPUs");
}

// ---- The options ----------------------------------------------------------------------------------------------------

void define(tools::OptionTable& table, std::span<const Property* const> known, Options& options) {
  using tools::as_written, tools::becomes, tools::completed, tools::into, tools::parsed_by;
  using Device = Options::Device;
  const auto duration = parsed_by(tools::parse_duration, "a time such as 90s, 10m or 1h (720h at most)");
  const auto ranks = parsed_by(tools::parse_ranks, "numbers and ascending ranges from 1 to 64, such as 1-9,16");
  const auto seed = parsed_by(tools::parse_seed, "a whole number of at most 64 bits, as 42 or 0x2a");
  const auto properties = [known](auto& option, auto& text) { return properties_of(option, text, known); };
  const auto repro = [known](auto& option, auto& text) { return repro_of(option, text, known); };
  const std::vector<std::string_view> some = {"shm", "gloo", "hosts", "ucx", "hosts_ucx", "nccl"};
  std::vector<std::string_view> required = some, names;
  required.insert(required.end(), {"cpu", "cuda"});
  for (const Property* property : known) names.push_back(property->name);
  constexpr std::string_view kEffort = "How much";
  table.add({kEffort, "--quick", "", "thousands of cases in under 20 s; the default"});
  table.add({kEffort, "--full", "", "more of everything, in under 10 minutes", becomes(options.effort, Effort::full)});
  table.add({kEffort, "--soak", "TIME", "the quick cases with ever new seeds, for that long: 90s, 10m, 1h",
             into(options.soak, duration), kRare});
  constexpr std::string_view kWhat = "What";
  table.add({kWhat, "--backend", "LIST", "some of shm,gloo,hosts,ucx,hosts_ucx,nccl; default: all but over UCX",
             completed(into(options.backends, backends_of), some)});
  table.add({kWhat, "--require", "LIST", "backends and devices that must be usable, as gloo,cuda",
             completed(into(options.require, required_of), required), kRare});
  table.add({kWhat, "--device", "DEVICE", "memory of buffers: all, cpu or cuda; default: all",
             into(options.device,
                  tools::one_of<Device>({{"all", Device::all}, {"cpu", Device::cpu}, {"cuda", Device::cuda}}))});
  table.add(
      {kWhat, "--np", "LIST", "numbers of ranks, as 3,5; default: 1-9, --full: and 16", into(options.ranks, ranks)});
  table.add(
      {kWhat, "--only", "LIST", "these properties and no others", completed(into(options.only, properties), names)});
  table.add(
      {kWhat, "--skip", "LIST", "all properties but these", completed(into(options.skip, properties), names), kRare});
  table.add({kWhat, "--algo", "LIST", "these algorithms and no others, as ring,knomial:radix=3",
             into(options.algorithms, algorithms_of), kRare});
  table.add({kWhat, "--faults", "", "also harm the ranks and see what the others say", becomes(options.faults, true)});
  table.add({kWhat, "--fault-start", "PROGRAM",
             "with --faults: only drills, whose rank R is started by PROGRAM R COMMAND…, on another host, say",
             into(options.fault_start, as_written), kRare});
  table.add({kWhat, "--seed", "N", "of all that is random, as 42 or 0x2a; default: a new one", into(options.seed, seed),
             kRare});
  table.add({kWhat, "--repro", "TOKEN", "one case, as the report of a failure names it", into(options.repro, repro)});
  table.add({kWhat, "--self-test", "", "check the checker: it must find every bug planted in a backend of its own",
             becomes(options.self_test, true), kRare});
  constexpr std::string_view kOutput = "Output";
  table.add({kOutput, "--junit", "FILE", "write the results as JUnit XML", into(options.junit, as_written)});
  table.add({kOutput, "--json", "FILE", "write the results as JSON", into(options.json, as_written), kRare});
  table.add({kOutput, "--html", "FILE", "write the results as a page that needs no network",
             into(options.html, as_written), kRare});
  table.add({kOutput, "--verbose", "", "print every case as it ends", becomes(options.verbose, true), kRare});
  table.add(
      {kOutput, "--no-progress", "", "no progress line, even on a terminal", becomes(options.progress, false), kRare});
  table.add({tools::kOther, "--timeout", "TIME", "how long one call may take; default: 20s",
             into(options.timeout, duration), kRare});
  table.add({kOutput, "--list", "", "print the properties and end"});
  table.add({"", "--spawned", "TEXT", "", into(options.spawned, as_written)});
}

// ---- What cannot be used together -----------------------------------------------------------------------------------

struct Exclusion {
  std::string_view option, reason;
  std::vector<std::string_view> others;
};

void check_combinations(const tools::Values& values) {
  constexpr std::pair<std::string_view, std::string_view> kEfforts[] = {
      {"--quick", "--full"}, {"--quick", "--soak"}, {"--full", "--soak"}};
  for (const auto& [one, other] : kEfforts) {
    if (values.has(one) && values.has(other))
      throw UsageError("{} and {} exclude each other; give one of them", one, other);
  }
  // These decide which cases are run; the planted bugs of --self-test have a seed, too.
  std::vector<std::string_view> planted = {"--quick", "--full", "--soak", "--backend", "--device",
                                           "--np",    "--only", "--skip", "--algo",    "--faults"};
  std::vector<std::string_view> selecting = planted, all;
  selecting.insert(selecting.end(), {"--seed", "--self-test"});
  planted.insert(planted.end(), {"--junit", "--json", "--html", "--require"});
  for (const tools::OptionRow& row : values.rows()) {
    if (!row.group.empty() && !row.is_named("--list")) all.push_back(row.all_names().front());
  }
  const Exclusion exclusions[] = {{"--list", "--list only prints", all},
                                  {"--repro", "--repro runs the one case that its token describes", selecting},
                                  {"--self-test", "--self-test has cases and a backend of its own", planted}};
  for (const auto& [option, reason, others] : exclusions) {
    const tools::Given* other = values.has(option) ? values.first_of(others) : nullptr;
    if (other != nullptr) throw UsageError("{}; leave out {}", reason, other->said_as);
  }
}

std::string list_text(std::span<const Property* const> known) {
  std::size_t width = 0;
  for (const Property* property : known) width = std::max(width, property->name.size());
  std::string text;
  for (const Property* property : known) {
    const bool fault = property->kind == Property::Kind::fault;
    text += fmt::format("{:<{}}  {}{}\n", property->name, width, property->summary, fault ? " (with --faults)" : "");
  }
  return text;
}

}  // namespace

Request parse_command_line(const std::vector<std::string>& arguments, std::span<const Property* const> known) {
  tools::OptionTable table(
      {.tool = "colcheck",
       .head = "Checks that every collective primitive is right, here, on this machine.\nUsage: colcheck [options]",
       .footer = kExamples,
       .brief = kBrief});
  Options options;
  define(table, known, options);
  if (auto text = table.parse(arguments)) return *std::move(text);
  check_combinations(table.values());
  if (table.values().has("--list")) return list_text(known);
  table.values().apply();
  check_left(options, known);
  return options;
}

}  // namespace col::colcheck

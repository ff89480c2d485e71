#include "colcheck/options.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/gone.hpp"
#include "common/option_values.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
namespace tools = col::tools;
using Words = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

const Property kExactLike{"exact", "sums are right", Property::Kind::group, nullptr, nullptr, OnGpus::buffers};
const Property kPlansLike{"plans", "plans are legal", Property::Kind::alone, nullptr, nullptr};
const Property kKillLike{"kill", "a death is noticed", Property::Kind::fault, nullptr, nullptr};
constexpr const Property* kKnown[] = {&kExactLike, &kPlansLike, &kKillLike};

// "--np 3 --json x": its words.
Words words_of(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

Options parse(const Words& words) {
  return std::get<Options>(parse_command_line(words, kKnown));
}

std::string text_of(const Words& words) {
  return std::get<std::string>(parse_command_line(words, kKnown));
}

// What is said about a command line that is wrong.
std::string complaint(const Words& words) {
  try {
    parse_command_line(words, kKnown);
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("options: without any, all of the quick cases", "[colcheck]") {
  const Options options = parse({});
  CHECK(options.effort == Effort::quick);
  CHECK(options.soak == col::Duration::zero());
  CHECK((options.backends.empty() && options.require.empty() && options.algorithms.empty()));
  CHECK((options.only.empty() && options.skip.empty()));
  CHECK(options.device == Options::Device::all);
  CHECK_FALSE(options.ranks);
  CHECK_FALSE(options.seed);
  CHECK_FALSE(options.repro);
  CHECK((options.junit.empty() && options.json.empty() && options.html.empty()));
  CHECK_FALSE((options.faults || options.self_test || options.verbose));
  CHECK(options.progress);
  CHECK(options.timeout == seconds(20));
  CHECK(options.spawned.empty());
  CHECK(default_ranks(Options{}) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(default_ranks({.effort = Effort::full}) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 16});
}

TEST_CASE("options: every one arrives, joined to its value or not", "[colcheck]") {
  const Options options = parse(words_of(
      "--full --backend gloo,shm --require=gloo,cpu --device cpu --np 1-3,16,2 --only=exact,kill --skip plans "
      "--algo ring,knomial:radix=3 --seed 0x1F --junit a.xml --json=x=y --html h.html --faults --timeout 500ms "
      "--verbose --no-progress --spawned 3:80:1:1"));
  CHECK(options.effort == Effort::full);
  CHECK(options.backends == Words{"gloo", "shm"});
  CHECK(options.require == Words{"gloo", "cpu"});
  CHECK(options.device == Options::Device::cpu);
  CHECK(options.ranks == std::vector<int>{1, 2, 3, 16});
  CHECK(options.only == Words{"exact", "kill"});
  CHECK(options.skip == Words{"plans"});
  CHECK(options.algorithms == Words{"ring", "knomial:radix=3"});
  CHECK(options.seed == 31);
  CHECK(options.junit == "a.xml");
  CHECK(parse({"--junit", "a b.xml"}).junit == "a b.xml");
  CHECK(options.json == "x=y");
  CHECK(options.html == "h.html");
  CHECK((options.faults && options.verbose && !options.progress));
  CHECK(options.timeout == milliseconds(500));
  CHECK(options.spawned == "3:80:1:1");
  CHECK(parse({"--soak", "10m"}).soak == minutes(10));
  CHECK(parse({"--self-test", "--seed", "7"}).self_test);
  CHECK(parse({"--backend", "all"}).backends.empty());
  CHECK(parse({"--device", "all"}).device == Options::Device::all);
  const Options repro = parse({"--repro", "exact,backend=shm,np=3,coll=allreduce,seed=0x1f", "--verbose"});
  REQUIRE(repro.repro);
  CHECK(token_of(*repro.repro) == "exact,backend=shm,np=3,coll=allreduce,seed=0x1f");
  for (const std::string token : {"exact,backend=nccl,np=2,coll=scan,device=cuda", "exact,backend=shm,device=mixed"})
    CHECK(token_of(*parse({"--repro", token}).repro) == token);
}

TEST_CASE("options: texts that end the program", "[colcheck]") {
  const std::string brief = text_of({"--help"});
  CHECK(text_of({"-h"}) == brief);
  CHECK(std::count(brief.begin(), brief.end(), '\n') <= 24);
  for (const char* part : {"--quick", "--repro", "--help-all"}) CHECK(brief.find(part) != std::string::npos);
  CHECK(brief.find("--fault-start") == std::string::npos);
  const std::string help = text_of({"--help-all"});
  for (const char* part : {"Usage: colcheck [options]\n", "--quick", "--soak", "--require", "--repro", "--junit",
                           "--self-test", "--no-progress", "Examples:\n", "Exit code: 0 ", "77 "}) {
    CHECK(help.find(part) != std::string::npos);
  }
  CHECK(help.find("--spawned") == std::string::npos);
  CHECK(help.find("\n\n\n") == std::string::npos);
  for (std::size_t start = 0, end; (end = help.find('\n', start)) != std::string::npos; start = end + 1) {
    CHECK(end - start <= 80);
  }
  CHECK(text_of({"--version"}).starts_with("colcheck "));
  CHECK(text_of({"--list"}) ==
        "exact  sums are right\nplans  plans are legal\nkill   a death is noticed (with --faults)\n");
}

TEST_CASE("options: what is no option, or has no value, or too many", "[colcheck]") {
  CHECK(complaint({"--bogus"}) == "unknown option '--bogus'");
  CHECK(complaint({"--bakend=shm"}) == "unknown option '--bakend'; did you mean '--backend'?");
  CHECK(complaint({"-np", "3"}) == "unknown option '-np'; did you mean '--np'?");
  CHECK(complaint({"shm"}) == "unexpected argument 'shm'; colcheck takes options only");
  CHECK(complaint({"--"}) == "unexpected argument '--'; colcheck takes options only");
  CHECK(complaint({""}) == "unexpected argument ''; colcheck takes options only");
  for (const char* flag : {"--quick", "--full", "--faults", "--self-test", "--verbose", "--no-progress", "--list",
                           "--help", "--help-all", "--version"}) {
    CHECK(complaint({std::string(flag) + "=yes"}) == std::string(flag) + " takes no value");
  }
  for (const char* option : {"--soak", "--backend", "--require", "--device", "--np", "--only", "--skip", "--algo",
                             "--seed", "--repro", "--junit", "--json", "--html", "--timeout", "--fault-start"}) {
    const std::string needs = fmt::format("{0} needs a value: {0} ", option);
    CHECK(complaint({option}).starts_with(needs));
    CHECK(complaint({option, "--verbose"}).starts_with(needs));
    CHECK(complaint({option, "--verbose=1"}).starts_with(needs));
    CHECK(complaint({option, ""}).starts_with(needs));
    CHECK(complaint({std::string(option) + "="}).starts_with(needs));
    CHECK(complaint({std::string(option) + "=", "3"}).starts_with(needs));
  }
  CHECK(complaint({"--np", "1", "--np=2"}) == "--np was given twice; give it once");
  CHECK(complaint({"--verbose", "--verbose"}) == "--verbose was given twice; give it once");
}

TEST_CASE("options: values that are wrong are told with the right form", "[colcheck]") {
  const auto bad_np = GENERATE("0", "65", "1-65", "9-1", "1,,2", ",1", "1,", "1-", "-3", "1-2-3", "x", "1.5", "0x2",
                               " 1", "99999999999999999999");
  CHECK(complaint({"--np", bad_np}) ==
        std::string("--np takes numbers and ascending ranges from 1 to 64, such as 1-9,16, not '") + bad_np + "'");
}

TEST_CASE("options: durations that are wrong", "[colcheck]") {
  const auto bad = GENERATE("10", "m", "0s", "-1s", "1.5h", "10 m", "10min", "s10", "721h", "99999999999999999999s");
  for (const char* option : {"--soak", "--timeout"}) {
    CHECK(complaint({option, bad}) ==
          std::string(option) + " takes a time such as 90s, 10m or 1h (720h at most), not '" + bad + "'");
  }
}

TEST_CASE("options: seeds that are wrong", "[colcheck]") {
  const auto bad = GENERATE("x", "0x", "-1", "1.0", "0xg", "18446744073709551616", "0x10000000000000000", "1 ");
  CHECK(complaint({"--seed", bad}) ==
        std::string("--seed takes a whole number of at most 64 bits, as 42 or 0x2a, not '") + bad + "'");
  CHECK(parse({"--seed", "18446744073709551615"}).seed == 0xffffffffffffffffULL);
}

TEST_CASE("options: names that do not exist, with the nearest that does", "[colcheck]") {
  CHECK(complaint({"--backend", "glo"}) == "--backend: there is no backend 'glo'; did you mean 'gloo'?");
  CHECK(complaint({"--backend", "shm,mpi-rma"}) ==
        "--backend: there is no backend 'mpi-rma'; write all, or some of shm,gloo,hosts,ucx,hosts_ucx,nccl");
  CHECK(complaint({"--backend", "shm,"}) == "--backend takes names with single commas between them, not 'shm,'");
  CHECK(complaint({"--require", "cudda"}) == "--require: there is no backend or device 'cudda'; did you mean 'cuda'?");
  CHECK(complaint({"--require", ",cuda"}) == "--require takes names with single commas between them, not ',cuda'");
  CHECK(complaint({"--device", "gpu"}) == "--device takes all, cpu or cuda, not 'gpu'");
  CHECK(complaint({"--only", "exat"}) == "--only: there is no property 'exat'; did you mean 'exact'?");
  CHECK(complaint({"--only", "exact,,plans"}) ==
        "--only takes names with single commas between them, not 'exact,,plans'");
  CHECK(complaint({"--skip", "something"}) ==
        "--skip: there is no property 'something'; colcheck --list names them all");
  CHECK(complaint({"--algo", "ring,:radix"}) == "--algo takes names such as ring or knomial:radix=3, not ':radix'");
  CHECK(complaint({"--algo", "ring,,mst"}) == "--algo takes names with single commas between them, not 'ring,,mst'");
  CHECK(complaint({"--repro", "exat,np=3"}) == "--repro: there is no property 'exat'; did you mean 'exact'?");
  CHECK(complaint({"--repro", "exact,np=x"}).starts_with("--repro: 'np=x' in the token has no number"));
  CHECK(complaint({"--repro", "exact,np=65"}) == "--repro: np=65 is more than 64 ranks");
}

TEST_CASE("options: what leaves nothing to check", "[colcheck]") {
  CHECK(complaint({"--only", "exact", "--skip", "exact"}) ==
        "--only and --skip leave no property to check; colcheck --list names them all");
  CHECK(complaint({"--skip", "exact,plans"}) ==
        "--only and --skip leave no property to check; colcheck --list names them all");
  CHECK(complaint({"--only", "kill"}) == "--only: 'kill' harms ranks on purpose; add --faults to allow it");
  CHECK(complaint({"--backend", "nccl", "--device", "cpu"}) ==
        "--device cpu leaves nothing of --backend nccl, which needs GPUs; leave one of them out");
  CHECK(complaint({"--only", "plans", "--device", "cuda"}) ==
        "--device cuda leaves no property to check: none of those asked for is about GPUs");
  CHECK(parse({"--backend", "shm,nccl", "--device", "cuda"}).backends == Words{"shm", "nccl"});
}

TEST_CASE("options: what excludes each other", "[colcheck]") {
  CHECK(complaint({"--full", "--quick"}) == "--quick and --full exclude each other; give one of them");
  CHECK(complaint({"--soak", "1m", "--full"}) == "--full and --soak exclude each other; give one of them");
  const auto refused_with = [](const std::string& first, const std::string& other, const std::string& why) {
    INFO(other);
    CHECK(complaint(words_of(first + " " + other)) == why + "; leave out " + words_of(other)[0]);
  };
  for (const char* other : {"--quick", "--full", "--soak 1m", "--backend shm", "--device cpu", "--np 3", "--only exact",
                            "--skip plans", "--algo ring", "--seed 1", "--faults", "--self-test"})
    refused_with("--repro exact,np=3", other, "--repro runs the one case that its token describes");
  for (const char* other :
       {"--full", "--backend shm", "--np 3", "--only exact", "--algo ring", "--faults", "--json x", "--require shm"})
    refused_with("--self-test", other, "--self-test has cases and a backend of its own");
  CHECK(complaint({"--list", "--only", "exact"}) == "--list only prints; leave out --only");
}

TEST_CASE("options: what is gone is refused by its name, with what to do instead", "[colcheck]") {
  for (const tools::Gone& gone : tools::kGone) {
    if (gone.tool != "colcheck") continue;
    CHECK(complaint({std::string(gone.name)}) == fmt::format("{} is gone; {}", gone.name, gone.instead));
    CHECK(complaint({std::string(gone.name) + "=x", "--quick"}).starts_with(gone.name));
  }
  CHECK(complaint({"--require", "torch"}).starts_with("--require: there is no backend or device 'torch'"));
}

TEST_CASE("options: the properties that are left are in the order of their list", "[colcheck]") {
  const auto names = [](const Words& words) {
    Words chosen;
    for (const Property* property : chosen_properties(parse(words), kKnown)) chosen.emplace_back(property->name);
    return chosen;
  };
  CHECK(names({}) == Words{"exact", "plans"});
  CHECK(names({"--faults"}) == Words{"exact", "plans", "kill"});
  CHECK(names({"--only", "plans,exact"}) == Words{"exact", "plans"});
  CHECK(names({"--skip", "exact"}) == Words{"plans"});
  CHECK(names({"--only", "kill", "--faults"}) == Words{"kill"});
}

TEST_CASE("options: algorithms are known when natives are", "[colcheck]") {
  const decltype(Selection::natives) natives = {{"gloo", {{col::Collective::allreduce, {Native{"gloo_ring"}}}}}};
  Options options = parse({"--algo", "ring,gloo_ring,rign,knomial:radix=3"});
  CHECK(unknown_algorithms(options, natives) == Words{"rign"});
  CHECK(unknown_algorithms(options, {}) == Words{"gloo_ring", "rign"});
  const auto said = [&](const Words& algorithms) {
    options.algorithms = algorithms;
    try {
      check_algorithms(options, natives);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said({"ring", "gloo_ring"}).empty());
  CHECK(said({"ring", "rign"}) == "--algo: there is no algorithm 'rign' here; did you mean 'ring'?");
  CHECK(said({"something_else"}).starts_with("--algo: there is no algorithm 'something_else' here; write some of "));
  CHECK(said({"something_else"}).find(",gloo_ring,") != std::string::npos);
}

TEST_CASE("option values: lists, ranges, times and seeds", "[colcheck]") {
  CHECK(tools::parse_list("b,a,b") == Words{"b", "a"});
  CHECK_FALSE(tools::parse_list(""));
  CHECK(tools::parse_ranks("16,1-3,2") == std::vector<int>{1, 2, 3, 16});
  CHECK(tools::parse_ranks("64") == std::vector<int>{64});
  CHECK(tools::parse_ranks("5-5") == std::vector<int>{5});
  CHECK_FALSE(tools::parse_ranks(""));
  CHECK(tools::parse_duration("90s") == col::Duration(seconds(90)));
  CHECK(tools::parse_duration("1h") == col::Duration(minutes(60)));
  CHECK(tools::parse_duration("720h"));
  CHECK_FALSE(tools::parse_duration(""));
  CHECK(tools::parse_seed("0Xff") == 255);
  CHECK_FALSE(tools::parse_seed(""));
}

#include "core/env.hpp"

#include <chrono>
#include <set>
#include <string>

#include "helpers.hpp"
#include "support/catch.hpp"

namespace env = col::core::env;
using core_test::error_of;
using core_test::ScopedVariable;
using namespace std::chrono_literals;

TEST_CASE("env: the table names every variable once, and the first fourteen come from colrun", "[env]") {
  std::set<std::string_view> names;
  std::size_t by_colrun = 0;
  for (const auto& variable : env::table()) {
    INFO(variable.name);
    CHECK(variable.name.starts_with("COL_"));
    CHECK(names.insert(variable.name).second);
    CHECK_FALSE(variable.values.empty());
    CHECK_FALSE(variable.fallback.empty());
    CHECK_FALSE(variable.meaning.empty());
    by_colrun += variable.set_by_colrun;
  }
  CHECK(by_colrun == 14);
  for (std::size_t i = 0; i < 14; ++i) CHECK(env::table()[i].set_by_colrun);
}

TEST_CASE("env: docs/environment.md is what the table says", "[env][docs]") {
  INFO("regenerate it: print_environment_md > docs/environment.md");
  CHECK((core_test::read_file(COL_SOURCE_DIR "/docs/environment.md") == env::markdown()));
}

TEST_CASE("env: a variable with nearly the name of one is told of, with that name; others are not", "[env]") {
  const ScopedVariable misspelt("COL_TIMEOT", "3"), swapped("COL_WORDL_SIZE", "4"), of_colrun("COL_RDZV_TOKEN", "x"),
      of_others("COL_LUNCH", "soup"), right("COL_TIMEOUT", "30");
  std::set<std::string> told;
  for (const std::string& warning : env::misspelt()) told.insert(warning);
  CHECK((told == std::set<std::string>{"COL_TIMEOT is set, but nothing reads it; did you mean COL_TIMEOUT?",
                                       "COL_WORDL_SIZE is set, but nothing reads it; did you mean COL_WORLD_SIZE?"}));
}

TEST_CASE("env: the page names every variable", "[env]") {
  const std::string page = env::markdown();
  for (const auto& variable : env::table())
    CHECK(page.find(std::string("| `").append(variable.name) + "` |") != page.npos);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
                           "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                           "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS", "PMI_FD"})
    CHECK(page.find(std::string("`") + name + "`") != page.npos);
  // A bar inside a cell would end it.
  CHECK(page.find("off \\| warn \\| info \\| debug") != page.npos);
}

TEST_CASE("env: a value is read, an empty one counts as unset", "[env]") {
  {
    const ScopedVariable set("COL_JOB_ID", "job 7");
    CHECK(env::get("COL_JOB_ID") == "job 7");
  }
  {
    const ScopedVariable empty("COL_JOB_ID", "");
    CHECK_FALSE(env::get("COL_JOB_ID").has_value());
  }
  const ScopedVariable unset("COL_JOB_ID", std::nullopt);
  CHECK_FALSE(env::get("COL_JOB_ID").has_value());
  CHECK_FALSE(env::get_int("COL_RANK", 0, 3).has_value());
  CHECK_FALSE(env::get_duration("COL_TIMEOUT").has_value());
}

TEST_CASE("env: a variable outside the table is a bug that is reported", "[env]") {
  core_test::check_error(col::ErrorCode::internal, {"COL_SECRET"}, [] { env::get("COL_SECRET"); });
}

TEST_CASE("env: whole numbers within their range", "[env]") {
  for (const auto& [text, value] : {std::pair("0", 0), std::pair("3", 3), std::pair("002", 2)}) {
    const ScopedVariable rank("COL_RANK", text);
    CHECK(env::get_int("COL_RANK", 0, 3) == value);
  }
  for (const char* text : {"4", "-1", "x", "1x", " 1", "1 ", "1.0", "0x1", "99999999999999999999"}) {
    const ScopedVariable rank("COL_RANK", text);
    const auto error = error_of([] { env::get_int("COL_RANK", 0, 3); });
    CHECK(error.code() == col::ErrorCode::invalid_argument);
    CHECK(error.message() ==
          std::string("COL_RANK='") + text + "' is not a whole number from 0 to 3; correct it, or unset it");
  }
}

TEST_CASE("env: durations", "[env]") {
  const ScopedVariable timeout("COL_TIMEOUT", "1.5s");
  CHECK(env::get_duration("COL_TIMEOUT") == col::Duration(1500ms));
  for (const char* text :
       {"0", "0s", "-5s", "fast", "5 s", "s", "1e3", "inf", "nan", "1.2.3", "5d", "99999999h", "."}) {
    const ScopedVariable wrong("COL_TIMEOUT", text);
    const auto error = error_of([] { env::get_duration("COL_TIMEOUT"); });
    CHECK(error.code() == col::ErrorCode::invalid_argument);
    CHECK(error.message().find(std::string("COL_TIMEOUT='") + text + "'") == 0);
    CHECK(error.message().find("500ms, 30s, 5m, 2h") != std::string::npos);
  }
}

TEST_CASE("durations: what people write is understood", "[env]") {
  const auto parse = [](std::string_view text) {
    return col::core::parse_duration(text).value_or(col::Duration::zero());
  };
  CHECK(parse("30") == 30s);
  CHECK(parse("0.5") == 500ms);
  CHECK(parse("500ms") == 500ms);
  CHECK(parse("30s") == 30s);
  CHECK(parse("5m") == 5min);
  CHECK(parse("2h") == 2h);
  CHECK(parse("0.25h") == 15min);
  CHECK(parse("8760h") == 8760h);
  CHECK_FALSE(col::core::parse_duration("8761h").has_value());
  CHECK_FALSE(col::core::parse_duration("").has_value());
}

TEST_CASE("durations: messages show the short form", "[env]") {
  using col::core::format_duration;
  CHECK(format_duration(0s) == "0s");
  CHECK(format_duration(250ns) == "250ns");
  CHECK(format_duration(12us) == "12us");
  CHECK(format_duration(500ms) == "500ms");
  CHECK(format_duration(1500ms) == "1.5s");
  CHECK(format_duration(5s) == "5s");
  CHECK(format_duration(90s) == "90s");
  CHECK(format_duration(5min) == "5m");
  CHECK(format_duration(2h) == "2h");
  CHECK(format_duration(-5s) == "-5s");
  CHECK(format_duration(100s) == "100s");
}

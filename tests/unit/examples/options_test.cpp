#include "options.hpp"

#include <string>
#include <variant>
#include <vector>

#include "support/catch.hpp"
#include "text.hpp"

namespace {

auto parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "digits_trainer");
  return digits::parse_options(static_cast<int>(arguments.size()), arguments.data());
}

digits::Problem problem_of(const std::vector<const char*>& arguments) {
  const auto parsed = parse(arguments);
  REQUIRE(std::holds_alternative<digits::Problem>(parsed));
  return std::get<digits::Problem>(parsed);
}

}  // namespace

TEST_CASE("options: without any, the defaults hold", "[examples]") {
  const auto parsed = parse({});
  const auto& options = std::get<digits::TrainerOptions>(parsed);
  CHECK(options.epochs == 15);
  CHECK_FALSE(options.batch);
  CHECK_FALSE(options.learning_rate);
  CHECK_FALSE(options.seed);
  CHECK(options.data.empty());
  CHECK(options.model == "digits.model");
  CHECK(options.resume.empty());
  CHECK(options.save);
}

TEST_CASE("options: each one is taken", "[examples]") {
  const auto parsed = parse({"--epochs", "3", "--batch", "7", "--lr", "1e-3", "--seed", "18446744073709551615",
                             "--data", "d.csv", "--model", "m", "--no-save", "--resume", "r", "--device", "cpu"});
  const auto& options = std::get<digits::TrainerOptions>(parsed);
  CHECK(options.epochs == 3);
  CHECK(options.batch == 7);
  CHECK(options.learning_rate == 1e-3);
  CHECK(options.seed == 18446744073709551615ull);
  CHECK(options.data == "d.csv");
  CHECK(options.model == "m");
  CHECK(options.resume == "r");
  CHECK_FALSE(options.save);
}

TEST_CASE("options: a bad value is a usage error that names option, value and range", "[examples]") {
  struct Bad {
    std::vector<const char*> arguments;
    const char* expected;
  };
  const std::vector<Bad> cases{
      {{"--epochs", "-3"}, "--epochs: must be a whole number 0..1000000, not '-3'"},
      {{"--epochs", "x"}, "--epochs: must be a whole number 0..1000000, not 'x'"},
      {{"--batch", "0"}, "--batch: must be a whole number 1..1000000, not '0'"},
      {{"--seed", "99999999999999999999999"}, "--seed: must be a whole number 0..18446744073709551615"},
      {{"--lr", "nan"}, "--lr: must be a number above 0 and at most 1e30, not 'nan'"},
      {{"--lr", "0"}, "--lr: must be a number above 0 and at most 1e30, not '0'"},
      {{"--lr", "inf"}, "--lr: must be a number above 0 and at most 1e30, not 'inf'"},
      {{"--device", "tpu"}, "--device: must be cpu or cuda, not 'tpu'"},
      {{"--strategy", "zero"}, "--strategy: this trainer is data-parallel; src/examples/python/strategies.py trains"},
      {{"--staleness", "2"}, "--staleness: this trainer is data-parallel; src/examples/python/strategies.py trains"},
      {{"--model", ""}, "--model: is empty"},
      {{"--epochs"}, "--epochs"},
      {{"--bogus"}, "--bogus"},
      {{"extra"}, "extra"},
  };
  for (const Bad& bad : cases) {
    const auto problem = problem_of(bad.arguments);
    CHECK(problem.exit_code == 2);
    CHECK(missing(problem.message, {bad.expected, "--help"}) == "");
    CHECK(problem.message.find("\n") == std::string::npos);
  }
}

TEST_CASE("options: cuda is refused with the reason", "[examples]") {
  const auto problem = problem_of({"--device", "cuda"});
  CHECK(problem.exit_code == 1);
  CHECK(missing(problem.message, {"--device cuda is not available: ", "--device cpu"}) == "");
}

TEST_CASE("options: help and version are texts, not errors", "[examples]") {
  const auto help = parse({"--help"});
  CHECK(missing(std::get<digits::Information>(help).text, {"--resume", "colrun -n 8"}) == "");
  const auto version = parse({"--version"});
  CHECK(missing(std::get<digits::Information>(version).text, {"digits_trainer 0."}) == "");
}

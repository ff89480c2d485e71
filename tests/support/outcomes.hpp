// What tests ask of errors, and of the ends of ranks.
#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// How a call fails, or a rank ends.
struct Ending {
  ErrorCode code;
  std::optional<int> rank = std::nullopt;  // that the error is about
  std::string says = "";
  bool promptly = false;  // of a rank: not at its deadline
};

// ---- Inside of a rank

// The error that `call` ends with; none is not as expected.
template <class Call>
Error error_of(Call&& call, CallPlace where = CallPlace::here()) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  expect(false, "no error", where);
  return Error(ErrorCode::internal, "");
}

// The same, which must be as wanted.
template <class Call>
Error expect_error(const Ending& want, Call&& call, CallPlace where = CallPlace::here()) {
  const Error error = error_of(call, where);
  const bool right = error.code() == want.code && error.rank() == want.rank.value_or(error.rank());
  expect(right && has(error.message(), want.says), error.what(), where);
  return error;
}
template <class Call>
Error expect_error(ErrorCode code, const std::string& says, Call&& call, CallPlace where = CallPlace::here()) {
  return expect_error({.code = code, .says = says}, call, where);
}

// Of any code, which what() begins with.
template <class Call>
Error expect_error(const std::string& says, Call&& call, CallPlace where = CallPlace::here()) {
  const Error error = error_of(call, where);
  expect(has(error.what(), says), error.what(), where);
  return error;
}

// ---- Outside

inline void check_ending(const Outcome& outcome, const Ending& want) {
  CHECK(outcome.code == want.code);
  if (want.rank) CHECK(outcome.error_rank == *want.rank);
  INFO(outcome.text);
  CHECK(has(outcome.text, want.says));
  if (want.promptly) CHECK(outcome.seconds < kPromptSeconds);
}

// All ranks; or all but one.
inline void check_all(const std::vector<Outcome>& outcomes, const Ending& want, int but = -1) {
  INFO(show(outcomes));
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) != but) check_ending(outcomes[rank], want);
  }
}

inline void check_good(const std::vector<Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

// All ranks, promptly.
inline void check_good_soon(const std::vector<Outcome>& outcomes) {
  check_good(outcomes);
  for (const Outcome& outcome : outcomes) CHECK(outcome.seconds < kPromptSeconds);
}

// A check of the ends of all ranks.
using Judge = std::function<void(const std::vector<Outcome>&)>;

inline Judge all_end(Ending want, int but = -1) {
  return [want = std::move(want), but](const std::vector<Outcome>& outcomes) { check_all(outcomes, want, but); };
}

// A variable of the environment, for as long as it lives. Contexts read theirs when they are made.
class Setting {
 public:
  Setting(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_.c_str()); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::string name_;
};

}  // namespace col::test

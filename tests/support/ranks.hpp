// Ranks as threads, for speed, and as processes, for truth.
//
// Catch2's assertions are not thread safe, and mean nothing in a forked child: a rank's body says what it expects with
// expect(), which throws, and the test looks at the outcomes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <col/group.hpp>

#include "support/prompt.hpp"

namespace col::test {

// The place of a call that leaves it out. std::source_location needs clang 15.
struct CallPlace {
  const char* file;
  int line;
  static constexpr CallPlace here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// Throws std::runtime_error with the place and `what` when `condition` does not hold.
void expect(bool condition, const std::string& what = "", CallPlace where = CallPlace::here());

// How one rank ended.
struct Outcome {
  bool good = false;              // the body returned
  std::optional<ErrorCode> code;  // it threw a col::Error of that code
  std::string text;               // what() of what it threw
  int error_rank = -1;            // Error::rank()
  int signal = 0;                 // processes: what killed it
  double seconds = 0;             // from start to end
};

// All outcomes in one text, for a failing test's message.
std::string show(const std::vector<Outcome>& outcomes);
bool all_good(const std::vector<Outcome>& outcomes);

using Body = std::function<void(int rank, Context& context)>;

struct RankOptions {
  Duration timeout = kDeadline;  // the contexts' timeout
  std::string job_id = "test";
  bool control_page = true;
  std::function<void(ContextSpec&)> adapt = {};  // changes what the ranks make their contexts of
};

// Runs `body` in one thread per rank, each with a Context of its own (current in that thread) over one MemoryStore.
std::vector<Outcome> run_threads(int ranks, const Body& body, const RankOptions& options = {});

// Runs `body` in one forked process per rank, with a FileStore in a directory of its own. A rank that has not ended
// after `limit` is killed and its outcome says so. Call it before the test program has started any thread that must
// survive.
std::vector<Outcome> run_processes(int ranks, const Body& body, const RankOptions& options = {},
                                   Duration limit = std::chrono::seconds(60));

}  // namespace col::test

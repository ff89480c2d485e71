// A rank's Python process, for --python: `python3 -m col.check` (src/python/col/check.py) makes the calls of the cases.
// The rank tells it what to do, and reads what it finds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <col/group.hpp>
#include <col/store.hpp>

#include "colcheck/obey.hpp"
#include "common/unique_fd.hpp"

namespace col::colcheck {

// The one that the package around this program was installed for, if it is in a wheel; else "python3".
std::string default_interpreter();

// Not thread safe.
class Interpreter {
 public:
  // Starts `program`, a name in PATH or a path, and blocks until it says what it has: for a minute at most. It uses the
  // package that this program was installed or built with, if there is one. `only_ask`: it says that and ends, and what
  // it writes to stderr is only seen in errors. Throws UsageError that says what to do.
  Interpreter(const std::string& program, bool only_ask);
  // Ends it.
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // "Python 3.11.2, numpy 1.26.4, torch 2.9.1", or "…, no torch".
  const std::string& has() const noexcept { return has_; }
  bool has_torch() const { return !has_.ends_with("no torch"); }

  // Makes it rank spec.rank of a world of such processes, which meet through `store`, that of this rank's own world.
  // Every rank calls it. Blocks until rank 0 has, for a minute at most. Throws UsageError if the ranks are on several
  // hosts; col::Error.
  void join(const ContextSpec& spec, Store& store);
  // Has it carry out an order of kind `run`, as carry_out() does. If it ends on the way, or is killed because it does
  // not go on, the answer has `ended`. Requires: join().
  Answer run(const Order& order, std::uint64_t number, const ObeyOptions& options);

 private:
  void start(const std::string& program, bool only_ask);
  // Gives up if it has ended, or reads nothing for a minute: reading tells that.
  void say(const std::string& line);
  // Nothing if it has ended, or the time is up.
  std::optional<std::string> read_line(Deadline deadline);
  // Closes its input, waits until it has ended, and kills it when `patience` is over. "ended by signal 11".
  std::string end(Duration patience);

  pid_t pid_ = -1;
  tools::UniqueFd talk_;  // its stdin and stdout
  std::string read_;      // and not yet returned
  std::string has_;
  std::unique_ptr<StoreServer> meeting_;  // rank 0 has it
};

}  // namespace col::colcheck

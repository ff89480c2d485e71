// A rank's side of a run: it carries out the lead's orders, and answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/gpus.hpp"
#include "colcheck/engine/property.hpp"
#include "common/coordinator.hpp"

namespace col::colcheck {

// ---- Orders and answers. They are texts that travel through the job's store, so that a checker of collectives does
// not need collectives.

struct Order {
  enum class Kind : std::uint8_t {
    look,   // each rank says which GPU it has
    probe,  // the first `ranks` ranks make a group over `backend`: does it work, and which own algorithms does it have?
    run,    // the first `ranks` ranks make a group over `backend` and run the cases in it, one after the other
    share,  // each of the first `ranks` ranks alone runs the cases whose number, modulo `ranks`, is its own
  };
  Kind kind = Kind::probe;
  Devices devices = Devices::cpu;  // equal to those of all cases
  std::string backend = {};
  int ranks = 0;
  std::vector<Case> cases = {};
};

// One rank's answer.
struct Answer {
  struct Entry {
    std::size_t index;  // of the case
    Finding finding;    // anything except a pass without a digest
  };
  struct Took {
    std::size_t index;  // of the case
    std::int64_t us;
  };
  std::vector<Entry> entries = {};
  std::vector<Took> times = {};  // of rank 0 in a group, and of every rank that is alone
  // The number of cases that this rank has finished. If there are more cases, the group was given up after the last of
  // these.
  std::size_t done = 0;
  std::string trouble = {};  // why the group could not be made; then nothing was run
  // For a probe, from rank 0: what the backend offers in addition to the built-in algorithms.
  Natives natives = {};
  RankGpu gpu = {};  // for a look
};

std::string encode(const Order& order);
std::string encode(const Answer& answer);
// Requires: `text` is from the corresponding encode function.
Order decode_order(const std::string& text);
Answer decode_answer(const std::string& text);

// ---- What a rank does

struct ObeyOptions {
  Duration timeout = std::chrono::seconds(20);  // of one call
  // Called before each case, on this rank.
  std::function<void(const Case&)> on_case = {};
};

// Does this rank's part in `order`, the run's number `number`. Blocks until it is done. Does not throw for findings of
// cases, or for a group that cannot be made.
Answer carry_out(Context& context, const Order& order, std::uint64_t number, const ObeyOptions& options);

// Waits for orders and carries them out, until there are no more. Throws col::Error if the lead is lost.
void obey(Context& context, tools::Coordinator& lead, const ObeyOptions& options);

// ---- A note of the case in which this process crashes

// From here on, a fatal signal writes one line to stderr that names the rank and the case, and then ends the process as
// it would have without this. Call it once, before any other handler of these signals is installed.
void install_crash_note(int rank);

// The case that begins now. Async-signal-safe readers see this text or the one before, perhaps mixed.
void note_case(std::string_view token) noexcept;

}  // namespace col::colcheck

// What passes between rank 0 and the other ranks: orders, commands and answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/error.hpp>

#include "colbench/cell/results.hpp"
#include "colbench/workload/workload.hpp"

namespace col::colbench {

// What rank 0 must measure, as text that passes between processes.
struct Order {
  Method method = {};
  int launch = 0;
  // 0: sample the cells. Otherwise measure what the machine can do at their sizes, and time each kernel this many
  // times.
  int calibrations = 0;
  std::vector<CellSpec> cells = {};
  std::int64_t begun_ns = 0;  // the run, by now_ns() of this host
};

std::string encode(const Order& order);
// Throws UsageError if the text is not from encode().
Order decode_order(const std::string& text);

// Trivially copyable, so it is sent as it is.
struct Command {
  enum class Kind : std::uint8_t {
    order,     // take the Order whose text follows
    group,     // make the group of cell `cell`
    set_up,    // the same, and make its workload
    kernel,    // make the workload of a kernel on `bytes`; `alone`: only on rank 0
    take,      // time it `samples` times
    hand_over  // StartLine::hand_over()
  };
  Kind kind = Kind::order;
  Kernel calibration = Kernel::copy;
  bool alone = false;
  bool whole_check = false;  // of the first sample
  bool checked = true;
  int cell = 0;
  int samples = 0;
  std::uint64_t iteration = 0;  // of the first sample
  std::size_t bytes = 0;
  double delay_seconds = 0;
};

// The results of one rank for one command. Times are in seconds after the common start, or after the rank's own start
// if there is no common one.
struct Answer {
  std::string trouble = {};  // empty: all went well
  ErrorCode code = ErrorCode::internal;
  bool harmless = false;  // the group can be used again, because the call was refused before anything moved
  bool takes_part = true;
  double operations = 1;
  std::vector<double> began = {}, ended = {};
  std::vector<double> on_device = {};  // for each sample; empty if the GPU's time is not known
  Check check = {};
};

std::string encode(const Answer& answer);
// Throws std::runtime_error if the bytes are cut short.
Answer decode_answer(const std::string& bytes);

}  // namespace col::colbench

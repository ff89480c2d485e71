// The frame that every contestant is measured in: buffers, input, verification, the clock and the output are here, a
// driver only performs an operation once.
#pragma once

#include <functional>
#include <memory>

#include "cell.hpp"

namespace contest {

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Whether it has this operation. Called once for each cell, before run(); what it sets up is not timed.
  virtual bool prepare(const Cell&) { return true; }
  // Performs the operation once: this rank's output is complete when it returns. A send or a round trip is between the
  // ranks 0 and 1; others are not called.
  virtual void run(const Cell& cell) = 0;
  // Begins an allreduce; test() moves it on, and after wait() it is complete. Only where prepare() says that it has a
  // cell that computes.
  virtual void start(const Cell&) {}
  virtual void test() {}
  virtual void wait() {}
  // After the last run() of a cell.
  virtual void finish(const Cell&) {}
  // Moves things on for peers that still work; called now and then while this rank waits for them.
  virtual void progress() {}
  // Memory for an input or an output; what `allocate` returns is freed when the process ends. By default private pages
  // of the machine's smallest size.
  virtual void* allocate(std::size_t bytes);
};

// Measures the cells that the command line names, prints a line of JSON for each from rank 0, and returns the exit
// code: 0, 1 for wrong data or a failure, 2 for a wrong command line.
//
// `make` is called once; what it or a run throws is printed.
int measure(int argc, char** argv, const std::function<std::unique_ptr<Contestant>()>& make);

}  // namespace contest

// The network of a simulated job: what is sent arrives later, each message by its own time, and over a connection that
// is cut not at all.
#pragma once

#include <cstdint>

#include "simulation/faults.hpp"
#include "simulation/random.hpp"
#include "support/memory_channel.hpp"

namespace col::test {

class SimulatedNetwork final : public Network {
 public:
  // `longest`: of most messages. One in some hundred takes ten times as long.
  SimulatedNetwork(Simulator& simulator, const Truth& truth, Duration longest)
      : simulator_(simulator), truth_(truth), longest_(longest) {}

  Time arrival(std::int64_t from, std::int64_t to) override;
  bool is_lost(std::int64_t at, std::int64_t peer) override;

  Duration delay();  // of one message

 private:
  Simulator& simulator_;
  const Truth& truth_;
  const Duration longest_;
};

}  // namespace col::test

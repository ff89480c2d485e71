// Checks that the calls of the ranks of a simulated job have kept what is promised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "simulation/faults.hpp"
#include "simulation/mistake.hpp"
#include "simulation/simulator.hpp"

namespace col::test {

class Checks {
 public:
  using Time = Simulator::Time;

  // `timeout`: of most calls.
  Checks(Simulator& simulator, const Truth& truth, const std::optional<Mistake>& mistake, Duration timeout)
      : simulator_(simulator), truth_(truth), mistake_(mistake), timeout_(timeout) {}

  void problem(std::string text);
  // No wait beyond its deadline: the call began then, and had this long.
  void time(int rank, const std::string& what, Time begun, Duration budget);
  // An error has a reason, and its culprit is no innocent rank. `groups`: those of the rank.
  void error(int rank, const std::string& what, const Error& error, const std::vector<Group>& groups, Time begun);
  // Where nothing was wrong but that ranks were killed, an error of a call says which.
  void names_somebody(int rank, const std::string& what, const Error& error, Time begun);
  // `wrong`: empty if it is right.
  void data(int rank, const std::string& what, const std::string& wrong);
  // The user's function has ended a call.
  void interrupted() { had_errors_ = true; }

  bool had_errors() const { return had_errors_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  bool was_store_mute(Time begun) const;

  Simulator& simulator_;
  const Truth& truth_;
  const std::optional<Mistake>& mistake_;
  const Duration timeout_;
  std::vector<std::string> problems_;
  bool had_errors_ = false;
};

}  // namespace col::test

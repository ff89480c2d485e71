// One rank's way through a program: begins what it takes part in, waits when and in the order that it likes.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "part.hpp"
#include "program.hpp"
#include "random.hpp"

namespace programs {

// A result is wrong, or a call has failed: what() says all that is known about it.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Player {
 public:
  // `places` by the number of their group in the program; of those that this rank is not in, the group is false.
  Player(std::vector<Place>& places, std::uint64_t seed) : places_(places), choices_(seed) {}

  // Throws Failure.
  void play(const std::vector<Event>& program);

 private:
  void begin(const Event& event);
  void end_one();
  void end(Part& part);
  void check(const Part& part) const;
  void check_dropped(std::size_t group);
  static void end_in_another_thread(col::Work& work);
  void end(col::Work& work);
  void dawdle();
  [[noreturn]] void fail(const Event& event, const std::string& why) const;

  std::vector<Place>& places_;
  Random choices_;
  std::vector<std::unique_ptr<Part>> open_ = {};
  std::vector<std::unique_ptr<Part>> dropped_ = {};
  std::vector<std::string> steps_ = {};  // what it has done
};

}  // namespace programs

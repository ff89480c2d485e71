// Calls of a program that consist of several of the library, each made and looked at in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "simulation/program.hpp"

namespace col::test {

class WideCall {
 public:
  static bool is_one(const Step& step) { return step.kind >= Step::Kind::any; }

  // `number`: of the step. `group`: where it runs.
  WideCall(const Step& step, int number, const Group& group);

  // Makes the calls. The buffers are the library's until the group is destroyed, if it throws. `waits_anew`: said where
  // a wait begins that has the whole timeout, after others than waits() counts.
  void run(Group& group, const std::function<void()>& waits_anew);
  // How many waits follow one another, each of which has the whole timeout.
  int waits() const;
  // Empty if all data is right.
  const std::string& problem() const { return problem_; }

 private:
  using Numbers = std::vector<std::int64_t>;

  void take_from_any(Group& group);
  void send_to_oneself(Group& group);
  void exchange_batch(Group& group);
  void exchange_objects(Group& group);
  void run_scope(Group& group, const std::function<void()>& waits_anew);
  void run_again(Group& group);
  void run_beside(Group& group);
  Numbers values(int from, int to, std::size_t count) const;
  std::string text_of(int rank) const;
  Numbers& buffer(Numbers numbers = {});
  Numbers& empty(std::size_t count) { return buffer(Numbers(count, -1)); }
  void expect(const Numbers& got, const Numbers& wanted, const char* what);

  const Step& step_;
  const int number_, rank_, size_, root_, tag_;
  std::list<Numbers> buffers_;  // each stays where it is
  std::string problem_;
};

}  // namespace col::test

// Looks now and then why an operation does not end, for a rank that does not wait for it: one that tests it again and
// again, leaves it to the waits of others, or waits for it a little at a time.
#pragma once

#include "group/diagnosis/diagnosis.hpp"

namespace col::group {

class Watch final : private WaitObserver {
 public:
  Watch(Surroundings& surroundings, Diagnosis::Describe describe)
      : diagnosis_(surroundings, std::move(describe)),
        wait_(Deadline::after(Deadline::kMaxBudget), nullptr, nullptr, this) {}

  // Cheap, but when a look is due. Throws why the operation cannot end.
  void look() { wait_.look(); }
  Diagnosis& diagnosis() { return diagnosis_; }

 private:
  bool on_slow(Duration /*waited*/) override { return diagnosis_.look(); }
  void on_timeout(Duration /*budget*/) override {}  // nobody waits

  Diagnosis diagnosis_;
  WaitContext wait_;
};

}  // namespace col::group

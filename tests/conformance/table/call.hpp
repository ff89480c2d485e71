// One rank's side of a case: makes the buffers, calls, waits, and looks at every byte afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "conformance/table/cases.hpp"
#include "conformance/table/reference.hpp"

namespace col::test {

class Call {
 public:
  Call(Group group, Case c);
  ~Call();  // what has not ended is given a moment to: the memory is still its own
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Blocking calls have ended when it returns. Throws col::Error.
  void start();
  // Waits in one of the ways there are. Does nothing for blocking calls. Throws col::Error.
  void wait();
  // What is wrong with the memory after that; empty when nothing is.
  std::string problem() const;

 private:
  // Memory with a margin on both sides, and what it must hold in the end.
  struct Memory {
    Bytes bytes, expected;
    void assign(const Bytes& content);
    void expect(std::size_t offset, const Bytes& content);
    std::byte* at(std::size_t offset);
  };

  void lay_out();
  void lay_out_in_place();
  std::size_t elements(const Bytes& bytes) const { return bytes.size() / size_of(case_.dtype); }
  // A yes or no that the seed decides; equal on all ranks unless `salt` differs.
  bool maybe(std::uint64_t salt) const { return mix(case_.seed, 900, salt) % 2 == 0; }
  void keep(Work work) { works_.push_back(std::move(work)); }

  void start_reduction(const Options& options);
  void start_movement(const Options& options);
  void start_messages(const Options& options);
  void rotate(const Options& options);
  void collect(const Options& options);
  void exchange(const Options& options);
  void wait_for(Work& work, std::uint64_t way);
  void sort_collected();

  Group group_;
  const Case case_;
  const Part part_;
  Memory first_, second_;  // input and output; in place, the first is both
  ConstTensorView in_;
  TensorView out_;
  Bytes collected_;                // recv_any: blocks in the order of their receives
  std::vector<int> sources_ = {};  // of these
  bool good_sources_ = true;       // one message from each rank
  std::vector<Work> works_;
};

// A whole case on one rank; what is wrong with it, empty when nothing is. Throws col::Error.
std::string run_case(Group& group, const Case& c);

}  // namespace col::test

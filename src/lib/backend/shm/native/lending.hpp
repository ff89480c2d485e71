// The protocol of a call in which ranks work on one another's memory (Direct, Pull), around the meetings of steps.hpp.
//
//   meeting           all have told where their buffers lie
//   work_on_others()  a rank says that it works, looks whether the group has ended, works, and looks again
//   meeting           all wait for all
//
// A rank whose call fails ends the group, and then take_back()s what others may write into. What it promises, whoever
// fails at whatever moment, and however long a rank is held up between two instructions, or in the kernel's copy:
//
//   - No rank reports success that has read memory after its owner's call had ended. Its second look comes after all
//     that it has read, and who fails ends the group before its user has the memory back. So what was read before a
//     look that finds nothing was read in time.
//   - No rank writes into memory whose owner's call has ended. It says that it works before its first look, and who
//     fails ends the group before it looks who works.
//
// A test goes through all interleavings of this very code, with ranks that fail at each point
// (tests/unit/shm/lending_test.cpp).
#pragma once

namespace col::shm_backend {

// What a Port does:
//
//   begin_work(), end_work()  tells the others that this rank works, or no longer
//   look()                    throws when the group has ended, or is about to
//   work()                    reads, or writes, the others' memory
//   look_after_work()         look(), after all that work() has read
//   wait_idle(peer)           false when the other rank works on for too long
//   detach()                  nobody else reaches this rank's memory from now on

template <class Port>
void work_on_others(Port& port) {
  struct End {
    Port& port;
    ~End() { port.end_work(); }
  };
  port.begin_work();
  const End end{port};
  port.look();
  port.work();
  port.look_after_work();
}

// Requires: this rank's call has failed, and the group has ended, or is about to.
template <class Port>
void take_back(Port& port, int rank, int size) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank && !port.wait_idle(peer)) return port.detach();
  }
}

}  // namespace col::shm_backend

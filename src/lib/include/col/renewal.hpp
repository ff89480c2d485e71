// Epochs of a group: its ranks go on without those that were lost, and with others that join. <col/group.hpp> includes
// this file.
//
// A group that init() or init_collective_group() has made has epochs, numbered from 0: the times between two changes of
// its ranks. When a rank is lost, or should leave, the ranks that are alive call renew(), and get the group of the next
// epoch:
//
//   col::Group world = col::init();                         // in a process that joins: col::join()
//   State state = fresh();
//   for (;;) try {
//     share(world, state, world.source());                  // a broadcast of the state from that rank
//     train(world, state);                                  // throws an error that is_loss()
//     break;
//   } catch (const col::Error& error) {
//     if (!error.is_loss()) throw;                          // peer_lost, or aborted because of that
//     world = world.renew({.progress = state.steps});
//   }
#pragma once

#include <cstdint>
#include <span>

#include <col/types.hpp>

namespace col {

// The arguments of Group::renew(). size, min and excluded must be equal on all ranks, the others need not be.
struct Renewal {
  // The number of ranks to reach with ranks that wait to join; 0: as many as before. No rank that is alive is left out.
  int size = 0;
  int min = 1;  // with fewer ranks there is no next epoch: peer_lost, on all
  // How long to wait for ranks that join, where there are fewer than `size`. The value of the lowest rank counts.
  Duration wait = {};
  // Ranks of this group that leave it, each at most once; this rank may be one. All other ranks that are alive must
  // call renew(). Those that leave may call it: they get a Group that converts to false. Lost ranks need not be listed.
  std::span<const int> excluded = {};
  // How far this rank's state is, by the program's own count, for example in steps: see Group::source().
  std::uint64_t progress = 0;
};

}  // namespace col

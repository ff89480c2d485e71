// The next epoch of a group: its ranks go on without those that were lost, and with others that join. <col/group.hpp>
// includes it.
//
// A group that init() or init_collective_group() has made has epochs, which are counted from 0. When a rank is lost, or
// shall leave, the ranks that live call renew(), and get the group of the next epoch:
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

// The wishes of a call of Group::renew(). size, min and excluded must be equal on all ranks, the others need not be.
struct Renewal {
  // How many ranks there shall be, if so many live or wait to join; 0: as many as before. Nobody is left out for it.
  int size = 0;
  int min = 1;  // with fewer ranks there is no next epoch: peer_lost, on all
  // How long to wait for ranks that join, where there are fewer than `size`. Need not be equal: that of the lowest rank
  // counts.
  Duration wait = {};
  // Ranks of this group that shall leave it, each at most once: also this one. All other ranks that live must call, and
  // those that leave may: they get a Group that converts to false. Ranks that were lost need not be listed.
  std::span<const int> excluded = {};
  // How far this rank's state is, by the program's own count: see Group::source().
  std::uint64_t progress = 0;
};

}  // namespace col

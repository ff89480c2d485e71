// A store that the ranks of an adopted job make by themselves, and that each of them leaves.
#pragma once

#include <col/store.hpp>

namespace col::group::adopt {

// Why a rank leaves, which decides how long leaving may take.
enum class Leaving {
  finished,  // all is well, probably for the others too
  failed,    // something is wrong with the job, and the others may never leave
  exiting,   // the process ends
};

// A rank that has left and uses the store again comes back, so that col::init() after col::finalize() works. Only
// erase() does not bring it back, because late clean-up consists of it: it does nothing then.
class AdoptedStore : public Store {
 public:
  // This rank no longer needs the store. Does nothing in a process that was forked from the one that is in it.
  virtual void leave(Leaving why) noexcept = 0;
};

}  // namespace col::group::adopt

// A store that the ranks of an adopted job make by themselves, and that each of them leaves.
#pragma once

#include <col/store.hpp>

namespace col::group::adopt {

// Why a rank leaves: how long that may take.
enum class Leaving {
  finished,  // all is well, and it is likely for the others as well
  failed,    // something is wrong with the job, and the others may never leave
  exiting,   // the process ends
};

// A rank that has left and uses the store again comes back, so that col::init() after col::finalize() works. Only
// erase() does not bring it back, as it is what late tidying up consists of: it does nothing then.
class AdoptedStore : public Store {
 public:
  // This rank needs the store no longer. A process that was forked from the one that is in it does nothing.
  virtual void leave(Leaving why) noexcept = 0;
};

}  // namespace col::group::adopt

// fork() for tests whose process has other threads.
#pragma once

#include <sys/types.h>

namespace col::test {

// Forks once the other threads of this process sleep, or after a moment if they go on. A child has copies of the locks
// as they are: glibc sees to its own, but AddressSanitizer of gcc 12 does not see to those of its allocator, and a
// child that got one locked by a thread that it does not have hangs at its first allocation.
pid_t fork_at_rest();

}  // namespace col::test

// The backends of the self-test: one for each planted bug, and one without.
#pragma once

namespace col::colcheck {

// Registers them all, as "planted-BUG". Their messages are those of shared memory, or of Gloo where that cannot be
// used; where neither can, they say so as their unavailable_reason(). Every rank has to call it before it joins a group
// over one of them. Does nothing when they are registered already. Thread safe.
void register_planted_backends();

}  // namespace col::colcheck

// The backends of the self-test: one for each planted bug, and one without.
#pragma once

namespace col::colcheck {

// Registers all of them, as "planted-BUG". Their messages go over shared memory, or over Gloo if that cannot be used.
// If neither can be used, their unavailable_reason() says so. Every rank has to call it before it joins a group over
// one of them. Does nothing if they are already registered. Thread safe.
void register_planted_backends();

}  // namespace col::colcheck

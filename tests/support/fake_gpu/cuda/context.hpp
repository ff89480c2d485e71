// Devices and their primary contexts.
#pragma once

#include "support/fake_gpu/cuda/stream.hpp"

namespace fake_gpu {

// Reads the environment and makes the devices. What cuInit returns.
CUresult make_devices(Machine& machine);

// The contexts of this thread, the current one last; a null handle may be on top.
std::vector<CUcontext>& context_stack();
// The current context, dead or alive; null when there is none.
std::shared_ptr<Context> current_context(const Machine& machine);

CUresult retain_primary(Machine& machine, int device, CUcontext* handle);
// At the last release all work of the context is waited for, and all it holds is let go.
CUresult release_primary(Machine& machine, Lock& lock, int device);

}  // namespace fake_gpu

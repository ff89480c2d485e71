// What the stand-ins for CUDA and NCCL know to be alive.
#pragma once

#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

namespace col::test {

inline void check_nothing_left() {
  for (const char* what : {"communicators", "operators"}) {
    INFO(what);
    CHECK(fake_nccl_alive(what) == 0);
  }
  for (const char* what : {"contexts", "streams", "events", "device_memory"}) {
    INFO(what);
    CHECK(fake_gpu_alive(what) == 0);
  }
}

}  // namespace col::test

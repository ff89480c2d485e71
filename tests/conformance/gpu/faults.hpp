// Groups of GPUs over the stand-ins for CUDA and NCCL, which fail when they are told to, and know what is alive.
#pragma once

#include <initializer_list>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

namespace col::test {

// A tenth of what NCCL takes: most cases are about something else. AsNccl is for those that are about ends.
inline constexpr int kQuickLook = 50, kNcclsLook = 500;
inline const bool kEndsQuickly = (fake_nccl_look_every(kQuickLook), true);

// For as long as it lives, a communicator takes as long to end as NCCL's.
class AsNccl {
 public:
  AsNccl() { fake_nccl_look_every(kNcclsLook); }
  ~AsNccl() { fake_nccl_look_every(kQuickLook); }
  AsNccl(const AsNccl&) = delete;
  AsNccl& operator=(const AsNccl&) = delete;
};

inline void check_none_alive(std::initializer_list<const char*> of_cuda, std::initializer_list<const char*> of_nccl) {
  for (const char* what : of_cuda) {
    INFO(what);
    CHECK(fake_gpu_alive(what) == 0);
  }
  for (const char* what : of_nccl) {
    INFO(what);
    CHECK(fake_nccl_alive(what) == 0);
  }
}

inline void check_nothing_left() {
  check_none_alive({"contexts", "streams", "events", "device_memory"}, {"communicators", "operators"});
}

inline void forget_faults() {
  fake_gpu_reset();
  fake_nccl_reset();
}

// Ranks for which the stand-ins have faults: these are forgotten at the end, and nothing may be left.
inline std::vector<Outcome> run_with_faults(int ranks, const GpuBody& body) {
  const auto outcomes = run_gpu_ranks(ranks, body);
  forget_faults();
  check_nothing_left();
  return outcomes;
}

// Makes the call once, and then again and again, which must call none of those functions of CUDA and of NCCL.
template <class Call>
void expect_made_once(Group& group, std::initializer_list<const char*> of_cuda,
                      std::initializer_list<const char*> of_nccl, Call call) {
  const auto made = [&] {
    std::size_t calls = 0;
    for (const char* name : of_cuda) calls += fake_gpu_calls(name);
    for (const char* name : of_nccl) calls += fake_nccl_calls(name);
    return calls;
  };
  call();
  group.barrier();
  group.barrier();  // the first one makes an event of its own, maybe after another rank has left it
  const std::size_t before = made();
  group.barrier();  // nobody is past `before` until all have taken it
  for (int i = 0; i < 10; ++i) call();
  group.barrier();
  expect(made() == before, "something is made anew");
  group.barrier();
}

}  // namespace col::test

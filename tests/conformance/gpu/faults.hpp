// Groups of GPUs over the stand-ins for CUDA and NCCL, which fail when they are told to, and know what is alive.
#pragma once

#include <nccl.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"
#include "support/prompt.hpp"
#include "support/soon.hpp"

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

// The form of NCCL's communicators: docs/decisions/0035-blocking-communicators.md.
inline bool is_blocking() {
  const char* const form = std::getenv("COL_NCCL_BLOCKING");
  return form != nullptr && std::string_view(form) == "on";
}

inline bool can_revoke() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess && version >= 22807;
}

// Before 2.28.7, nothing ends a blocking call that waits for a rank: what it needs stays.
inline bool leaves_behind() {
  return is_blocking() && !can_revoke();
}

inline void check_none_alive(std::initializer_list<const char*> of_cuda, std::initializer_list<const char*> of_nccl) {
  // A thread that was left behind in a blocking call frees what it has when that has ended. It may come to its wait
  // only now.
  const auto goes = [](auto alive, const char* what) {
    fake_nccl_end_waits();
    return alive(what) == 0;
  };
  const auto none = [&](auto alive, const char* what) {
    INFO(what);
    CHECK((alive(what) == 0 || (is_blocking() && soon([&] { return goes(alive, what); }))));
  };
  if (!leaves_behind()) {
    for (const char* what : of_cuda) none(fake_gpu_alive, what);
  }
  for (const char* what : of_nccl) none(fake_nccl_alive, what);
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

// A part of a wheel's libraries (-Wl,--wrap in src/lib/meson.build). What gcc 12 and later compile asks for the wait()
// of condition variables that libstdc++ has since 3.4.30, which promises not to throw; a machine with glibc 2.34 may
// have an older one.
#include <pthread.h>

#include <condition_variable>
#include <mutex>

extern "C" void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable& condition, std::unique_lock<std::mutex>& lock) noexcept {
  ::pthread_cond_wait(condition.native_handle(), lock.mutex()->native_handle());
}

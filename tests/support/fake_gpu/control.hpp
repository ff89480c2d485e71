// How a test steers the stand-ins for libcuda.so.1 and libnccl.so.2: faults, counters, leaks.
//
// Every function is a C symbol of the library its name begins with (fake_gpu_: libcuda.so.1, fake_nccl_: libnccl.so.2),
// so a test may link the libraries or find the functions with dlsym. All may be called from any thread, also before
// cuInit. `name` is the symbol of an entry point as dlsym finds it, such as "cuMemAlloc_v2" or "ncclAllReduce".
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// ---- libcuda.so.1 ----

// The `nth` next call of the entry point (1 = the very next) returns `code` and does nothing else.
void fake_gpu_fail(const char* name, int code, int nth);
// How often the program called the entry point. The stand-in for NCCL does not count here.
size_t fake_gpu_calls(const char* name);
// The names of the entry points that the program has called, one a line; good until the next call from this thread.
const char* fake_gpu_called(void);
// Forgets counts and faults that have not struck, gives held streams free.
void fake_gpu_reset(void);
// What is alive: "contexts" (counted retains), "streams", "high_priority_streams" (those of the highest), "events",
// "device_memory", "host_memory" (allocations), "modules", "graphs", "graph_execs", and
// "device_bytes". An unknown word ends the process.
size_t fake_gpu_alive(const char* what);
// From now on the device's context is broken, as after an illegal access in a kernel: every call in it returns `code`,
// work that has not begun is dropped. A context retained anew after the last release works again.
void fake_gpu_break_context(int device, int code);
// While held, no stream begins its next piece of work; what runs goes on.
void fake_gpu_hold_streams(int held);
// While held, no copy into device memory begins, nor what comes after it in its stream.
void fake_gpu_hold_copies_to_device(int held);
// Where the bytes of device memory can be read and written by the host; null when [pointer, pointer + bytes) is not
// inside one live allocation. For kernels of tests and for looking at memory behind the driver's back.
void* fake_gpu_host_view(uint64_t pointer, size_t bytes);

// ---- libnccl.so.2 ----

// As fake_gpu_fail, fake_gpu_calls, fake_gpu_called, fake_gpu_reset.
void fake_nccl_fail(const char* name, int code, int nth);
size_t fake_nccl_calls(const char* name);
const char* fake_nccl_called(void);
void fake_nccl_reset(void);
// Counts things that are alive in this process: "communicators", of which "unconnected" have not met all their ranks,
// "operators", "windows", "registrations", "memory" (ncclMemAlloc).
size_t fake_nccl_alive(const char* what);
// ncclCommGetAsyncError answers `code` on every communicator of this process in which its rank is `rank` (-1: all).
void fake_nccl_async_error(int rank, int code);
// The `nth` next launch (an operation or a whole group) of such communicators never ends by itself: only abort or
// revoke ends it.
void fake_nccl_hang(int rank, int nth);
// From now on, revoking such communicators never ends by itself: only abort ends it, and what runs, or
// fake_nccl_release_aborts().
void fake_nccl_hang_revoke(int rank);
// From now on, the call that revokes such communicators returns only after fake_nccl_release_aborts().
void fake_nccl_hang_revoke_call(int rank);
// From now on, the call that deregisters a window of such communicators returns only after fake_nccl_release_aborts().
void fake_nccl_hang_deregister(int rank);
// How long the threads of communicators sleep from now on between two looks whether they are to end: for that long, and
// a fifth at most, takes a revoke, and up to that long a destroy, at times. It is 500 at first, as NCCL has it, and
// fake_nccl_reset() leaves it.
void fake_nccl_look_every(int milliseconds);
// Calls on blocking communicators that wait by now for ranks which never make their part of it, or never connect, end
// with an error. Nothing else ends them where there is no revoke.
void fake_nccl_end_waits(void);
// Aborting such communicators ends only by fake_nccl_release_aborts(), which ends all that hang by then.
void fake_nccl_hang_abort(int rank);
void fake_nccl_release_aborts(void);
// The greatest maxCTAs that a live communicator of this process was made with; 0 when none was told any.
int fake_nccl_max_ctas(void);
// What each live communicator of this process was told in its configuration, beside the name and the form: a line each,
// "minCTAs=2 CTAPolicy=1"; good until the next call from this thread.
const char* fake_nccl_settings(void);
// How many launches (operations outside of groups, and communicators in groups) this process has made so far.
size_t fake_nccl_launches(void);
// The names of the live communicators of this process, one a line; good until the next call from this thread.
const char* fake_nccl_names(void);
// The rank is lost to every communicator of this process: operations with it hang, and the others find
// ncclRemoteError with ncclCommGetAsyncError.
void fake_nccl_lose_peer(int rank);
// How many launches are on a stream or in one and have not ended.
size_t fake_nccl_running(void);

}  // extern "C"

#!/usr/bin/env python3
"""The scan itself: each planted fault must be reported, and nothing else. usage: time_passed_in_checker.py SCAN"""

import pathlib
import subprocess
import sys
import tempfile

SCAN = sys.argv[1]
CPP, PYTHON = "src/lib/a.cpp", "src/python/a.py"
FAULTS = {  # each line is one, of that kind
    CPP: {
        "clock": """
const auto now = std::chrono::steady_clock::now();
const auto now = std::chrono::high_resolution_clock::now();
const auto now = std::chrono::system_clock::now();
const auto now = file_clock::now();
const auto now = std::filesystem::file_time_type::clock::now();
const auto now = utc_clock::now();
using Clock = std::chrono::steady_clock;
std::chrono::time_point<std::chrono::system_clock> then;
std::chrono::time_point<std::chrono::file_clock, Duration> then;
std::chrono::time_point<std::chrono::utc_clock> then;
using Clock = std::chrono::high_resolution_clock;
::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
gettimeofday(&now, nullptr);
std::timespec_get(&now, TIME_UTC);
const std::int64_t now = ::time(nullptr);
const std::int64_t now = time(NULL);
const std::int64_t now = time(0);
::time(&now);
time(&now);
std::time(&now);
::time(at);
std::time(at);
const auto ticks = clock();
const auto ticks = std::clock();
const auto ticks = __builtin_ia32_rdtsc();
const auto ticks = __rdtscp(&core);
const auto ticks = __builtin_readcyclecounter();
asm volatile("rdtscp" : "=a"(low), "=d"(high));
asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
""",
        "sleep": """
std::this_thread::sleep_for(50us);
std::this_thread::yield();
{"tcp://host"}; std::this_thread::yield();
if (c == '"') std::this_thread::yield();  // "
for (int i = 0; i < 1'000; ++i) std::this_thread::yield();  // 1'000
print(R"-(")" // )-"); std::this_thread::yield();
namespace here = std::this_thread;
while (busy()) ::sched_yield();
pthread_yield();
thrd_yield();
::nanosleep(&time, nullptr);
::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
::usleep(50);
usleep(delay);
thrd_sleep(&time, nullptr);
::sleep(seconds);
if (const auto left = sleep(seconds)) return sleep(left);
if (a and sleep(1) || b or sleep(1) || not sleep(1)) co_return sleep(1);
else sleep(1);
do sleep(1); while (a);
timerfd_settime(alarm, 0, &spec, nullptr);
::timer_create(CLOCK_MONOTONIC, &event, &timer);
setitimer(ITIMER_REAL, &spec, nullptr);
::alarm(1);
for (;;) ::pause();
for (;;) pause();
""",
        "poll": """
::poll(&entry, 1, -1);
while (poll(&entry, 1, left) < 0) look(0, 0);
poll(entries.data(), n, left);
poll(entries.data(), n, time_left(0, 0));
ppoll(&entry, 1, &limit, 0);
::ppoll(&entry, 1, nullptr, 0);
pselect(1, &in, nullptr, nullptr, &limit, nullptr);
select(1, &in, nullptr, nullptr, nullptr);
::select(1, &in, nullptr, nullptr, &limit);
const int count = epoll_wait(epoll, events, 8, -1);
const int count = epoll_wait(epoll, events, 8, wait_time(0));
const int count = epoll_wait(epoll, events, 8, wait_time(a, 0));
const int count = epoll_pwait(epoll, events, 8, -1, 0);
const int count = epoll_pwait2(epoll, events, 8, nullptr, 0);
::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
""",
        "atomic": """
state_.wait(State::idle);
flag.wait(true);
word->wait(0);
word.wait(seen(0), std::memory_order_acquire);
std::atomic_ref(word).wait(value);
std::atomic_wait(&word, value);
std::atomic_flag_wait_explicit(&flag, true, std::memory_order_acquire);
""",
        "condition": """
std::condition_variable changed;
std::condition_variable_any changed;
std::future<int> end;
std::shared_future<int> end;
std::promise<void> end;
std::async(run);
std::packaged_task<void()> task;
std::latch all(2);
std::barrier all(2);
std::binary_semaphore free(1);
std::recursive_timed_mutex mutex;
std::timed_mutex mutex;
pthread_cond_wait(&changed, &mutex);
pthread_barrier_wait(&all);
cnd_wait(&changed, &mutex);
pthread_mutex_timedlock(&mutex, &time);
pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &time);
pthread_rwlock_timedrdlock(&mutex, &time);
mtx_timedlock(&mutex, &time);
sem_wait(&free);
sem_timedwait(&free, &time);
sem_clockwait(&free, CLOCK_MONOTONIC, &time);
""",
        "wait": """
::flock(fd, LOCK_EX);
if (::flock(fd.get(), LOCK_SH) == 0 && ::flock(fd.get(), LOCK_UN) == 0) return;
::fcntl(fd, F_SETLKW, &range);
::fcntl(fd, F_OFD_SETLKW, &range);
lockf(fd, F_LOCK, 0);
sigtimedwait(&set, nullptr, &time);
sigwaitinfo(&set, nullptr);
sigwait(&set, &signal);
sigsuspend(&set);
while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) look(WNOHANG);
::waitid(P_PID, id, &info, WEXITED | WNOWAIT);
wait3(&status, 0, nullptr);
::wait4(child, &status, 0, &usage);
::wait(&status);
::wait(at);
wait(&status);
wait(nullptr);
wait(NULL);
wait(0);
""",
        "syscall": """
::syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr);
::syscall(SYS_futex_waitv, words, 2, 0, nullptr, 0);
::syscall(__NR_futex, &word, FUTEX_WAIT, 1, nullptr);
futex(&word, FUTEX_WAIT, 1);
::syscall(SYS_clock_nanosleep, 0, 0, &time, nullptr);
::syscall(SYS_ppoll, &entry, 1, nullptr, nullptr);
::syscall(SYS_pselect6, 1, &in, nullptr, nullptr, nullptr, nullptr);
::syscall(SYS_epoll_wait, epoll, events, 8, -1);
::syscall(SYS_sched_yield);
::syscall(SYS_pause);
::syscall(SYS_wait4, child, &status, 0, nullptr);
::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
""",
        "thread": """
std::thread([] {}).detach();
std::jthread helper;
std::vector<std::thread> helpers;
pthread_create(&thread, nullptr, run, nullptr);
thrd_create(&thread, run, nullptr);
""",
        "header": """
#include <thread>
#include <condition_variable>
#include <future>
#include <latch>
#include <barrier>
#include <semaphore>
# include <sys/select.h>
using namespace std; thread t(run);
namespace s = ::std; s::thread t(run);
""",
    },
    PYTHON: {
        "clock": """
began = time.monotonic()
now = time.time_ns()
now = time.perf_counter()
now = time.process_time()
now = time.thread_time()
now = time.clock_gettime(time.CLOCK_MONOTONIC)
from time import monotonic
from time import *
from datetime import datetime, timedelta; datetime.utcnow()
import datetime as dt; now = dt.datetime.now()
from datetime import date; date.today()
""",
        "sleep": """
time.sleep(0.1)
import time as clock; clock.sleep(1)
print(f"{clock.sleep(1)}")
from asyncio import sleep
from asyncio import sleep as nap
nap(1)
asyncio.sleep(1)
os.sched_yield()
signal.setitimer(signal.ITIMER_REAL, 1)
signal.alarm(1)
signal.pause()
""",
        "poll": """
import selectors; selectors.DefaultSelector()
select.select([], [], [])
from select import epoll
""",
        "condition": """
from threading import Event, Lock
self.changed = threading.Condition()
threading.BoundedSemaphore()
threading.Semaphore()
threading.Barrier(2)
from threading import *
multiprocessing.Event()
asyncio.Event()
from queue import SimpleQueue
multiprocessing.Queue()
""",
        "wait": """
queue.get(timeout=3)
self.lock.acquire(timeout=3)
queue.put(1, timeout=3)
process.join(timeout=3)
end.result(timeout=3)
ray.wait([ref], timeout=3)
process.communicate(timeout=3)
asyncio.wait_for(end, 3)
asyncio.timeout(3)
from concurrent.futures import wait
concurrent.futures.as_completed(ends)
os.waitpid(child, 0)
signal.sigtimedwait([], 3)
""",
        "thread": """
threading.Thread(target=run).start()
threading.Timer(3, run)
_thread.start_new_thread(run, ())
concurrent.futures.ThreadPoolExecutor()
multiprocessing.pool.ThreadPool(2)
from concurrent.futures import ThreadPoolExecutor as Pool
asyncio.to_thread(run)
""",
    },
}
FINE = {
    "src/lib/core/clock/a.cpp": "const auto now = std::chrono::steady_clock::now();",
    CPP: """
// std::this_thread::yield() is for others.
/* ::poll(&entry, 1, -1)
   std::condition_variable */
#include <mutex>
using namespace std::chrono_literals;
std::chrono::steady_clock::time_point at;
const auto now = core::Clock::now();
core::sleep_for(50us);
core::poll_for({&entry, 1}, 50us);
const std::thread::id self = std::this_thread::get_id();
const unsigned most = std::thread::hardware_concurrency();
watch.sleep_for(name, 50us);
if (look.poll(lock)) return;
if (::poll(entries.data(), entries.size(), 0) != 1) return;
const int count = epoll_wait(epoll_.get(), events.data(), 8, 0);
const int count = epoll_pwait(epoll_.get(), events.data(), size(at(0), 8), 0, nullptr);
std::uint64_t yield = 0;  // for sched_yield()
const auto moment = time(event);
const auto moment = plan::time(&event) + event.time(&event);
Simulated::wait(nullptr);
clock(to) = std::max(clock(from), clock(to));
pause(wait);
Flight::pause(turn);
throw Error("poll(fds, n, -1) and usleep(1): \\" std::thread");
fail('"', "std::thread", '\\'', "std::thread", u8"std::thread", R"-(")" std::thread)-", LR"(" std::thread)", L'"', "std::thread");
changed_.wait(lock);
changed_.wait(lock, [this] { return is_there(0); });
work.wait();
work.wait(stream);
call.value.wait(Stream{stream});
call.value.wait(col::Stream{stream});
ports_.wait(id);
line->wait(timeout);
handle->wait(budget);
handle->wait(Duration::zero());
wire_->wait(operation.ticket, wait);
pending.executor.wait(wait);
WaitContext wait(Deadline::after(timeout));
if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) ::flock(fd.get(), LOCK_UN);
::waitpid(child.pid, nullptr, WNOHANG);
::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
struct flock range = {};
::syscall(SYS_gettid);
asm volatile("yield");
""",
    "src/lib/ours.cpp": """
double Waiter::sleep(Duration time) { return sleep(time), other->sleep(time); }
std::optional<Shift> clock() const { return clock_.shift(); }
Clock& clock();
bool poll(std::unique_lock<core::Mutex>& lock);
inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) { return select(no, yes, condition); }
enum class Target { nobody, alarm };
void alarm(Target target);
""",
    PYTHON: '''
"""Until a deadline of time.monotonic()."""
from threading import Lock, local  # no threading.Event
from datetime import timedelta
from .time import sleep
print("time.sleep(1)")
work.wait()
found = table.get(name, 3)
names = ", ".join(names)
group.barrier(timeout=3)
lock.acquire()
''',
}


def expect(tree, exceptions, *reports):
    """Over a tree of these files, the scan must report these, one a line."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (root / "list.txt").write_text(exceptions)
        folders = sorted({"/".join(path.split("/")[:2]) for path in tree})
        run = subprocess.run([sys.executable, "-B", SCAN, root, root / "list.txt", *folders], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    wrong = [f"{report!r}, and got {line!r}" for report, line in zip(reports, lines) if report not in line]
    if wrong or run.stderr or len(lines) != len(reports) or run.returncode != (1 if reports else 0):
        sys.exit("\n".join([f"over {tree} with {exceptions!r}, expected", *(wrong or [*reports, "and got", run.stdout, run.stderr])]))


for path, kinds in FAULTS.items():
    planted = [(kind, line) for kind, lines in kinds.items() for line in lines.strip().split("\n")]
    tree = {path: "\n".join(line for _, line in planted)}
    reports = [(kind, f"{path}:{number}: {kind} outside of core/clock: {line}") for number, (kind, line) in enumerate(planted, 1)]
    expect(tree, "", *(report for _, report in reports))
    for excused in kinds:
        expect(tree, f"{path} {excused} has a reason\n", *(report for kind, report in reports if kind != excused))
expect(FINE, "")
expect({"src/lib/a.md": ""}, "", "src/lib has no sources")
THREAD = "std::thread thread;  // of its own"
expect({CPP: f"\n\n{THREAD}"}, "", f"{CPP}:3: thread outside of core/clock: {THREAD}")
# A literal hides nothing, and a comment only itself.
expect({CPP: f'open("/dev/shm/*");\n{THREAD}\nopen("*/");'}, "", f"{CPP}:2: thread")
expect({CPP: f'R"(\n/*\n)"; /* "\n */ {THREAD}'}, "", f"{CPP}:4: thread")
expect({PYTHON: 'x = """\n#"""; time.sleep(1)\nfrom threading import (\n    Lock,\n    Event,\n)'}, "", ":2: sleep", ":5: condition")
expect({CPP: "::poll(&entry, 1,\n\n       left);\nstd::thread t;"}, "", f"{CPP}:1: poll", f"{CPP}:4: thread")
expect({CPP: "void sleep(Duration time) { ::sleep(1); }\nauto left = poll(&entry, 1, -1);"}, "", f"{CPP}:1: sleep", f"{CPP}:2: poll")
expect({CPP: "::poll(entries.data(),\n       entries.size(),\n       0);"}, "")
expect({CPP: THREAD}, f"# Nobody\n\n{CPP} thread has a reason\n{CPP} clock had one\nsrc/lib/gone.cpp thread had one\n",
       f"{CPP} clock needs no exception any more", "src/lib/gone.cpp thread needs no exception any more")
expect({CPP: THREAD}, f"{CPP} thread\n", f"{CPP} thread has no reason")
expect({CPP: THREAD}, f"{CPP} thread one\n{CPP} thread two\n", f"{CPP} thread is there twice")
expect({CPP: ""}, f"{CPP}\n{CPP} a reason\n", f"{CPP} has no kind", f"{CPP} has no kind")

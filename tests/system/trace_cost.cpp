// What a trace, or the flight recorder, adds to an allreduce: loops with and without it, in turns, in one run.
//
//   colrun -n 2 trace_cost trace BYTES       a trace of this process, on and off
//   colrun -n 2 trace_cost recorder BYTES    RankRecord::note() as it is, and as a function that returns at once
//   (x86-64)
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>
#include <col/trace.hpp>

namespace {

constexpr int kPairs = 200, kCalls = 500, kWarmUp = 200;

// The first byte of note(), which a return instruction takes the place of.
class Recorder {
 public:
  Recorder()
      : code_(static_cast<unsigned char*>(
            ::dlsym(RTLD_DEFAULT, "_ZN3col10RankRecord4noteEimNS_10CollectiveERKNS_11CallDetailsEb"))) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    void* const begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(code_) / page * page);
    if (code_ == nullptr || ::mprotect(begin, page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
      throw std::runtime_error("RankRecord::note() cannot be changed here");
    first_ = *code_;
  }
  void turn(bool on) {
    constexpr unsigned char kReturn = 0xc3;
    *code_ = on ? first_ : kReturn;
  }

 private:
  unsigned char* const code_;
  unsigned char first_ = 0;
};

double loop_ns(col::Group& world, std::vector<float>& data) {
  world.barrier();
  for (int i = 0; i < kWarmUp; ++i) world.allreduce(data);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) world.allreduce(data);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCalls;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(bool is_trace, std::size_t bytes) {
  col::Group world = col::init();
  std::vector<float> data(bytes / sizeof(float));
  std::vector<double> off, on, differences;
  const char* const folder = std::getenv("TMPDIR");
  const std::string file =
      std::string(folder != nullptr ? folder : "/tmp") + "/trace_cost." + std::to_string(::getpid());
  Recorder* const recorder = is_trace ? nullptr : new Recorder;
  for (int pair = 0; pair < kPairs; ++pair) {
    if (recorder != nullptr) recorder->turn(false);
    off.push_back(loop_ns(world, data));
    if (recorder != nullptr)
      recorder->turn(true);
    else
      col::start_trace(std::uint64_t{1} << 20);
    on.push_back(loop_ns(world, data));
    if (is_trace) col::end_trace(file);
    differences.push_back(on.back() - off.back());
  }
  ::unlink(file.c_str());
  if (world.rank() == 0)
    std::printf(
        "allreduce of %zu B, %d ranks: without %.1f ns (least %.1f), with %.1f (least %.1f); %+.1f ns, %+.1f %%\n",
        bytes, world.size(), median(off), std::ranges::min(off), median(on), std::ranges::min(on), median(differences),
        100 * median(differences) / median(off));
  col::finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what != "trace" && what != "recorder") {
    std::fprintf(stderr, "usage: trace_cost trace|recorder BYTES\n");
    return 2;
  }
  try {
    measure(what == "trace", static_cast<std::size_t>(std::atoi(argv[2])));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

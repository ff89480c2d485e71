// Memory from alloc(): what it is, what alloc() and free() refuse, and that nothing is left of what was freed.
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>
#include <col/memory.hpp>

#include "conformance/group/memory_trials.hpp"
#include "conformance/group/worlds.hpp"

namespace {

using namespace std::chrono_literals;
using namespace col::test;
using col::Collective;
using col::DType;
using col::ErrorCode;
using col::Group;
using col::ReduceOp;
using col::Work;

// ---- What this process has

std::size_t entries_of(const char* directory) {
  std::size_t entries = 0;
  DIR* const opened = opendir(directory);
  expect(opened != nullptr, directory);
  while (readdir(opened) != nullptr) ++entries;
  closedir(opened);
  return entries;
}

std::size_t lines_of(const char* path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

// "VmSize", "RssShmem" … of /proc/self/status, in bytes.
std::size_t status_of(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1)) << 10;
  }
  expect(false, "no " + field);
  return 0;
}

// A limit of this process, for as long as it lives.
class Limit {
 public:
  Limit(decltype(RLIMIT_AS) resource, std::size_t value) : resource_(resource) {
    expect(getrlimit(resource_, &before_) == 0);
    const rlimit lower{std::min<rlim_t>(value, before_.rlim_max), before_.rlim_max};
    expect(setrlimit(resource_, &lower) == 0);
  }
  ~Limit() { setrlimit(resource_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
};

ErrorCode free_error(void* memory) {
  return error_of([&] { col::free(memory); }).code();
}

// The group works, and so does memory that it gives.
void expect_usable(Group& group) {
  auto* const memory = static_cast<int*>(group.alloc(1000 * sizeof(int)));
  std::fill_n(memory, 1000, group.rank() + 1);
  group.allreduce(col::TensorView(memory, 1000, DType::int32));
  const int want = group.size() * (group.size() + 1) / 2;
  expect(std::all_of(memory, memory + 1000, [&](int value) { return value == want; }), "a wrong sum");
  group.barrier();
  col::free(memory);
}

}  // namespace

TEST_CASE("memory: it is zeroed and aligned, new or used before, whatever its size", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    for (const std::size_t bytes : {1u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 100000u, 5000000u}) {
      for (int again = 0; again < 3; ++again) {
        auto* const memory = static_cast<std::byte*>(group.alloc(bytes));
        expect(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0,
               fmt::format("{} bytes at {}", bytes, fmt::ptr(memory)));
        expect(std::all_of(memory, memory + bytes, [](std::byte byte) { return byte == std::byte{0}; }),
               fmt::format("{} bytes are not zero", bytes));
        std::fill_n(memory, bytes, std::byte{0xAB});
        col::free(memory);
      }
    }
    void* const nothing = group.alloc(0);
    void* const nothing_more = group.alloc(0);
    expect(nothing != nullptr && nothing_more != nullptr && nothing != nothing_more);
    group.allreduce(col::TensorView(nothing, 0, DType::float32));
    col::free(nothing);
    col::free(nothing_more);
    expect(free_error(nothing) == ErrorCode::invalid_argument);
  });
}

TEST_CASE("memory: free refuses what alloc has not given, and what it has freed", "[group][memory]") {
  // Processes: in one, an address beside this rank's memory may be another rank's.
  processes_on_each_backend(2, [](Group& group, col::Context&) {
    col::free(nullptr);
    int local = 0;
    const auto foreign = std::make_unique<int>(1);
    const std::size_t bytes = 3 * 4096;
    auto* const memory = static_cast<std::byte*>(group.alloc(bytes));
    memory[bytes - 1] = std::byte{7};
    for (void* wrong : {static_cast<void*>(&local), static_cast<void*>(foreign.get()), static_cast<void*>(memory + 1),
                        static_cast<void*>(memory + 64), static_cast<void*>(memory + 4096),
                        static_cast<void*>(memory + bytes), static_cast<void*>(memory - 64),
                        reinterpret_cast<void*>(std::uintptr_t{64}), reinterpret_cast<void*>(~std::uintptr_t{0})}) {
      expect(free_error(wrong) == ErrorCode::invalid_argument, fmt::format("{}", wrong));
      col::detail::free_or_keep(wrong);
    }
    expect(memory[bytes - 1] == std::byte{7});
    col::free(memory);
    expect(free_error(memory) == ErrorCode::invalid_argument);
    group.barrier();
    expect_usable(group);
  });
}

TEST_CASE("memory: free refuses what an operation in flight uses, and takes it afterwards", "[group][memory]") {
  for (const int n : {2, 3}) {
    threads_on_each_backend(n, [n](Group& group, col::Context&) {
      Group gate = group.dup();
      constexpr std::size_t kCount = 200000;
      for (const bool drop : {false, true}) {
        auto* const in = static_cast<float*>(group.alloc(kCount * sizeof(float)));
        auto* const out = static_cast<float*>(group.alloc((kCount + 100) * sizeof(float)));
        std::fill_n(in, kCount, 1.0F);
        const col::ConstTensorView from(in, kCount, DType::float32);
        const col::TensorView to(out + 50, kCount, DType::float32);
        if (group.rank() == 0) {
          Work work = group.iallreduce(from, to);
          if (drop) work = {};
          expect(free_error(in) == ErrorCode::invalid_argument, "the input was freed");
          expect(free_error(out) == ErrorCode::invalid_argument, "the output was freed");
          col::detail::free_or_keep(in);
          gate.barrier();
          work.wait();
        } else {
          gate.barrier();
          group.iallreduce(from, to).wait();
        }
        group.barrier();
        expect(out[50] == static_cast<float>(n) && out[49 + kCount] == static_cast<float>(n) && in[kCount - 1] == 1);
        col::free(in);
        col::free(out);
      }
      void* const letter = group.alloc(64);
      Work received = group.rank() == 0 ? group.irecv(col::TensorView(letter, 64, DType::uint8), 1) : Work();
      if (group.rank() == 0) expect(free_error(letter) == ErrorCode::invalid_argument, "the letter was freed");
      gate.barrier();
      if (group.rank() == 1) group.send(col::ConstTensorView(letter, 64, DType::uint8), 0);
      received.wait();
      col::free(letter);
      expect_usable(group);
    });
  }
}

TEST_CASE("memory: free refuses while another thread is in the group", "[group][memory]") {
  std::atomic<int> tried{0}, refused{0};
  const std::size_t backends = usable_backends().size();
  threads_on_each_backend(2, [&](Group& group, col::Context&) {
    void* const memory = group.alloc(1000);
    const auto op = col::Op::user(
        [&](const void* left, const void* right, void* result, std::size_t count, DType dtype) {
          ++tried;  // by a thread that is not inside the call
          refused += std::async(std::launch::async, [&] {
                       try {
                         col::free(memory);
                       } catch (const col::Error& error) {
                         return error.code() == ErrorCode::invalid_argument ? 1 : 0;
                       }
                       return 0;
                     }).get();
          add_any(left, right, result, count, dtype);
        },
        true, "meddle");
    std::vector<float> data(10, 1.0F);
    group.allreduce(data, {.op = op});
    expect(data[9] == 2);
    group.barrier();
    col::free(memory);
  });
  CHECK(tried >= static_cast<int>(backends));
  CHECK(refused == tried);
}

TEST_CASE("memory: ranks that ask for different sizes learn who is odd", "[group][memory]") {
  for (const int n : {3, 4}) {
    for (const std::size_t odd_bytes : {std::size_t{0}, std::size_t{1001}, std::size_t{1} << 40}) {
      for (const std::string& backend : usable_backends()) {
        const auto outcomes = run_threads(n, joined(n, backend, [&](Group& group, col::Context&) {
                                            col::free(group.alloc(group.rank() == n - 1 ? odd_bytes : 1000));
                                          }));
        INFO(backend << ", " << odd_bytes << " bytes\n" << show(outcomes));
        for (const Outcome& outcome : outcomes) {
          CHECK(outcome.code == ErrorCode::mismatch);
          CHECK(outcome.error_rank == n - 1);
          CHECK(outcome.seconds < 10);
        }
      }
    }
  }
}

TEST_CASE("memory: a rank that calls something else than alloc is a mismatch on all", "[group][memory]") {
  for (const std::string& backend : usable_backends()) {
    const auto outcomes = run_threads(3, joined(3, backend, [](Group& group, col::Context&) {
                                        if (group.rank() == 1)
                                          group.barrier();
                                        else
                                          col::free(group.alloc(1000));
                                      }));
    INFO(backend << "\n" << show(outcomes));
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 1);
    }
  }
}

TEST_CASE("memory: more than there is is refused on all ranks, and the group goes on", "[group][memory]") {
  for (const int n : {1, 2, 4}) {
    threads_on_each_backend(n, [](Group& group, col::Context&) {
      const std::size_t most = std::numeric_limits<std::size_t>::max();
      for (const std::size_t bytes : {std::size_t{1} << 40, std::size_t{1} << 47, std::size_t{1} << 62, most / 2,
                                      most / 2 + 1, most - 4096, most - 64, most - 1, most}) {
        const col::Error error = error_of([&] { static_cast<void>(group.alloc(bytes)); });
        expect(error.code() == ErrorCode::resource, fmt::format("{} bytes: {}", bytes, error.what()));
        expect_usable(group);
      }
    });
  }
}

TEST_CASE("memory: shared memory is taken at once, and given back by free", "[group][memory]") {
  processes_on_each_backend(2, [](Group& group, col::Context&) {
    if (group.backend() != "shm") return;  // ordinary memory comes as it is touched
    const std::size_t bytes = std::size_t{32} << 20, slack = bytes / 4;
    const std::size_t before = status_of("VmRSS");
    for (int again = 0; again < 5; ++again) {
      void* const memory = group.alloc(bytes);
      const std::size_t with = status_of("VmRSS");
      expect(with >= before + bytes - slack, fmt::format("{} bytes resident before, {} with {}", before, with, bytes));
      group.barrier();
      col::free(memory);
      group.barrier();
      col::free(group.alloc(1));  // by now all ranks have freed it
      const std::size_t after = status_of("VmRSS");
      expect(after <= before + slack, fmt::format("{} bytes resident before, {} after", before, after));
    }
  });
}

TEST_CASE("memory: where one rank has no room, no rank gets any", "[group][memory]") {
  for (const int n : {2, 3}) {
    processes_on_each_backend(n, [](Group& group, col::Context&) {
      const std::size_t bytes = std::size_t{64} << 20;
      group.barrier();
      for (int again = 0; again < 3; ++again) {
        std::optional<Limit> limit;
        if (group.rank() == 1) limit.emplace(RLIMIT_AS, status_of("VmSize") + (bytes >> 1));
        const std::size_t before = lines_of("/proc/self/maps");
        expect(error_of([&] { static_cast<void>(group.alloc(bytes)); }).code() == ErrorCode::resource);
        expect(lines_of("/proc/self/maps") <= before + 2, "something of it is left");
      }
      expect_usable(group);
      col::free(group.alloc(bytes));
    });
  }
}

TEST_CASE("memory: without descriptors on one rank, all get memory or none", "[group][memory]") {
  processes_on_each_backend(3, [](Group& group, col::Context&) {
    group.barrier();
    void* memory = nullptr;
    std::optional<ErrorCode> code;
    {
      std::optional<Limit> limit;
      if (group.rank() == 1) limit.emplace(RLIMIT_NOFILE, 3);
      try {
        memory = group.alloc(100000);
      } catch (const col::Error& error) {
        code = error.code();
      }
    }
    expect(memory != nullptr || code == ErrorCode::resource);
    for (const int got : group.allgather_object(memory != nullptr ? 1 : 0)) expect(got == (memory != nullptr ? 1 : 0));
    col::free(memory);
    expect_usable(group);
  });
}

TEST_CASE("memory: it outlives its group, and serves others", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group, col::Context& context) {
    context.init_group(
        {.name = "other", .rank = group.rank(), .world_size = 3, .backend_name = std::string(group.backend())});
    Group other = context.group("other");
    constexpr std::size_t kCount = 100000;
    auto* const memory = static_cast<float*>(group.alloc(kCount * sizeof(float)));
    auto* const unused = group.alloc(10);
    std::fill_n(memory, kCount, 1.0F);
    const col::TensorView view(memory, kCount, DType::float32);
    other.allreduce(view);
    expect(memory[0] == 3 && memory[kCount - 1] == 3);
    context.destroy_group("default");
    col::free(unused);
    expect(free_error(unused) == ErrorCode::invalid_argument);
    const ErrorCode want = error_of([&] { group.barrier(); }).code();
    expect(error_of([&] { static_cast<void>(group.alloc(10)); }).code() == want, "alloc on a destroyed group");
    other.allreduce(view);
    expect(memory[0] == 9 && memory[kCount - 1] == 9);
    std::fill_n(memory, kCount, 2.0F);
    expect_usable(other);
    context.destroy_group("other");
    expect(memory[kCount - 1] == 2);
    col::free(memory);
    expect(free_error(memory) == ErrorCode::invalid_argument);
  });
}

TEST_CASE("memory: it can be freed and used in a group that broke", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    Group rest = group.dup();
    auto* const memory = static_cast<float*>(group.alloc(1000 * sizeof(float)));
    const std::size_t count = group.rank() == 1 ? 999 : 1000;
    expect(error_of([&] { group.allreduce(col::TensorView(memory, count, DType::float32)); }).code() ==
           ErrorCode::mismatch);
    expect(error_of([&] { static_cast<void>(group.alloc(10)); }).code() == ErrorCode::aborted);
    std::fill_n(memory, 1000, 1.0F);
    rest.allreduce(col::TensorView(memory, 1000, DType::float32));
    expect(memory[999] == 3);
    rest.barrier();
    col::free(memory);
  });
}

TEST_CASE("memory: alloc waits for all ranks, until its deadline", "[group][memory]") {
  for (const std::string& backend : usable_backends()) {
    const auto outcomes = run_threads(2, joined(2, backend, [](Group& group, col::Context&) {
                                        Group gate = group.dup();
                                        if (group.rank() == 0)
                                          expect(error_of([&] {
                                                   static_cast<void>(group.alloc(10, {.timeout = 200ms}));
                                                 }).code() == ErrorCode::timeout);
                                        gate.barrier();
                                      }));
    INFO(backend << "\n" << show(outcomes));
    CHECK(all_good(outcomes));
    CHECK(outcomes[0].seconds < 10);
  }
}

TEST_CASE("memory: alloc while operations are in flight", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    std::vector<float> data(100000, 1.0F), sum(data.size());
    Work work = group.iallreduce(data, sum);
    auto* const memory = static_cast<float*>(group.alloc(100000 * sizeof(float)));
    if (group.rank() == 1) work.wait();
    std::fill_n(memory, 100000, 2.0F);
    group.allreduce(col::TensorView(memory, 100000, DType::float32));
    work.wait();
    expect(sum.back() == 3 && memory[99999] == 6);
    col::free(memory);
  });
}

TEST_CASE("memory: groups are found by name, and methods refuse another's", "[group][memory]") {
  threads_on_each_backend(2, [](Group& group, col::Context& context) {
    context.init_group(
        {.name = "other", .rank = group.rank(), .world_size = 2, .backend_name = std::string(group.backend())});
    Group other = context.group("other");
    void* const first = col::alloc(100);
    void* const second = col::alloc(100, {.group = "other"});
    void* const third = col::alloc(100, other);
    for (void* memory : {third, second, first}) col::free(memory);
    const auto none = [&](auto&& call) { return error_of([&] { static_cast<void>(call()); }).code(); };
    expect(none([] { return col::alloc(1, {.group = "nobody"}); }) == ErrorCode::not_initialized);
    expect(none([] { return Group().alloc(1); }) == ErrorCode::not_initialized);
    expect(none([] { return col::alloc(1, Group()); }) == ErrorCode::not_initialized);
    expect(none([&] { return group.alloc(1, {.group = "other"}); }) == ErrorCode::invalid_argument);
    expect(none([&] { return col::alloc(1, group, {.group = "other"}); }) == ErrorCode::invalid_argument);
    expect_usable(group);
    expect_usable(other);
  });
}

TEST_CASE("memory: containers with the allocator", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group, col::Context& context) {
    using Vector = std::vector<float, col::Allocator<float>>;
    const col::Allocator<float> allocator(group);
    {
      Vector gradients(50000, allocator);
      expect(std::count(gradients.begin(), gradients.end(), 0.0F) == 50000);
      std::fill(gradients.begin(), gradients.end(), 1.0F);
      group.allreduce(gradients);
      expect(gradients.front() == 3 && gradients.back() == 3);
      Vector copy = gradients, taken = std::move(gradients);
      copy.resize(60000, 2.0F);
      expect(copy[49999] == 3 && copy[59999] == 2 && taken.size() == 50000 && taken.get_allocator() == allocator);
      swap(copy, taken);
      group.allgather(col::ConstTensorView(copy).slice(0, 20000), taken);
      expect(taken[0] == 3 && taken[59999] == 3);
    }
    col::Allocator<double> other(allocator);
    expect(other == allocator && other.group().name() == group.name());
    double* const two = other.allocate(2);
    other.deallocate(two, 2);
    bool too_long = false;
    try {
      static_cast<void>(other.allocate(std::numeric_limits<std::size_t>::max() / sizeof(double) + 1));
    } catch (const std::bad_array_new_length&) {
      too_long = true;
    }
    expect(too_long);
    Vector longer_lived(100, allocator);
    context.destroy_group("default");
    longer_lived[99] = 1;
  });
}

TEST_CASE("memory: threads allocate and free in groups of their own, and free each other's", "[group][memory]") {
  constexpr std::size_t kRounds = 12;
  threads_on_each_backend(2, [](Group& group, col::Context&) {
    std::vector<Group> groups = {group.dup(), group.dup()};
    std::vector<std::vector<void*>> left(2);
    std::vector<std::future<void>> threads;
    for (std::size_t t = 0; t < 2; ++t) {
      threads.push_back(std::async(std::launch::async, [&, t] {
        for (std::size_t round = 0; round < kRounds; ++round) {
          expect_usable(groups[t]);
          left[t].push_back(groups[t].alloc(1000 + 5000 * t));
        }
      }));
    }
    for (auto& thread : threads) thread.get();
    for (std::size_t t = 0; t < 2; ++t) {
      threads[t] = std::async(std::launch::async, [&, t] {
        for (std::size_t i = t; i < kRounds; i += 2) {
          col::free(left[0][i]);
          col::free(left[1][i]);
        }
      });
    }
    for (auto& thread : threads) thread.get();
    expect_usable(group);
  });
}

TEST_CASE("memory: thousands of allocations leave no mapping, no descriptor and no bytes", "[group][memory]") {
  for (const int n : {2, 3}) {
    processes_on_each_backend(n, [](Group& group, col::Context&) {
      std::mt19937 own(static_cast<unsigned>(group.rank()));
      const auto rounds = [&](int count) {
        for (int round = 0; round < count; ++round) {
          std::vector<void*> pieces;
          for (const std::size_t bytes : {100u, 5000u, 300000u, 0u}) pieces.push_back(group.alloc(bytes));
          std::shuffle(pieces.begin(), pieces.end(), own);
          for (void* piece : pieces) col::free(piece);
        }
        group.barrier();
        col::free(group.alloc(1));
        group.barrier();
      };
      rounds(20);
      const std::size_t maps = lines_of("/proc/self/maps"), descriptors = entries_of("/proc/self/fd");
      const std::size_t size = status_of("VmSize"), shared = status_of("RssShmem");
      rounds(group.backend() == "gloo" ? 100 : kInstrumented ? 200 : 1000);
      // AddressSanitizer's own come and go; one for each allocation would be 800.
      expect(lines_of("/proc/self/maps") <= maps + (kInstrumented ? 400 : 50),
             fmt::format("{} mappings, then {}", maps, lines_of("/proc/self/maps")));
      expect(entries_of("/proc/self/fd") <= descriptors + 8,
             fmt::format("{} descriptors, then {}", descriptors, entries_of("/proc/self/fd")));
      expect(status_of("VmSize") <= size + (16 << 20));
      expect(status_of("RssShmem") <= shared + (4 << 20));
    });
  }
}

TEST_CASE("memory: a rank that dies is named by those that wait for it in alloc", "[group][memory]") {
  for (const std::string& backend : usable_backends()) {
    const auto outcomes = col::test::run_processes(3, joined(3, backend, [](Group& group, col::Context&) {
                                                     for (int round = 0;; ++round) {
                                                       if (group.rank() == 2 && round == 5) kill(getpid(), SIGKILL);
                                                       col::free(group.alloc(100000));
                                                     }
                                                   }));
    INFO(backend << "\n" << show(outcomes));
    CHECK(outcomes[2].signal == SIGKILL);
    for (const std::size_t survivor : {0u, 1u}) {
      CHECK(outcomes[survivor].code == ErrorCode::peer_lost);
      CHECK(outcomes[survivor].error_rank == 2);
      CHECK(outcomes[survivor].seconds < 5);
    }
  }
}

TEST_CASE("memory: free knows of operations of other groups, and of those that have failed", "[group][memory]") {
  threads_on_each_backend(2, [](Group& group, col::Context& context) {
    context.init_group(
        {.name = "other", .rank = group.rank(), .world_size = 2, .backend_name = std::string(group.backend())});
    Group other = context.group("other");
    constexpr std::size_t kCount = 100000;
    auto* const memory = static_cast<float*>(group.alloc((kCount + 1) * sizeof(float)));
    auto* const second = static_cast<float*>(group.alloc(kCount * sizeof(float)));
    if (group.rank() == 0) {
      Work work = other.iallreduce(col::TensorView(memory + 1, kCount, DType::float32),
                                   col::TensorView(memory + 1, kCount, DType::float32), {.timeout = 300ms});
      Work dropped = other.iallreduce(col::TensorView(second, kCount, DType::float32),
                                      col::TensorView(second, kCount, DType::float32), {.timeout = 300ms});
      expect(free_error(memory) == ErrorCode::invalid_argument, "used by another group");
      dropped = {};
      expect(error_of([&] { work.wait(); }).code() == ErrorCode::timeout);
      col::free(memory);
      context.destroy_group("other");
      col::free(second);
    } else {
      col::free(memory);
      col::free(second);
    }
    expect_usable(group);
  });
}

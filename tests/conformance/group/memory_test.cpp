// Memory from alloc(): what it is, what alloc() and free() refuse, and that nothing is left of what was freed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <future>
#include <limits>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>
#include <col/memory.hpp>

#include "conformance/group/memory_trials.hpp"
#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// ---- What this process has

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

void expect_not_freed(void* memory, CallPlace where = CallPlace::here()) {
  expect_error(
      ErrorCode::invalid_argument, "", [&] { col::free(memory); }, where);
}

// The group works, and so does memory that it gives.
void expect_usable(Group& group) {
  auto* const memory = filled_memory<int>(group, 1000, group.rank() + 1);
  group.allreduce(TensorView(memory, 1000, DType::int32));
  const int want = group.size() * (group.size() + 1) / 2;
  expect(std::all_of(memory, memory + 1000, [&](int value) { return value == want; }), "a wrong sum");
  group.barrier();
  col::free(memory);
}

TEST_CASE("memory: it is zeroed and aligned, new or used before, whatever its size", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
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
    group.allreduce(TensorView(nothing, 0, DType::float32));
    col::free(nothing);
    col::free(nothing_more);
    expect_not_freed(nothing);
  });
}

TEST_CASE("memory: free refuses what alloc has not given, and what it has freed", "[group][memory]") {
  // Processes: in one, an address beside this rank's memory may be another rank's.
  processes_on_each_backend(2, [](Group& group) {
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
      expect_not_freed(wrong);
      col::detail::free_or_keep(wrong);
    }
    expect(memory[bytes - 1] == std::byte{7});
    col::free(memory);
    expect_not_freed(memory);
    group.barrier();
    expect_usable(group);
  });
}

TEST_CASE("memory: free refuses what an operation in flight uses, and takes it afterwards", "[group][memory]") {
  for (const int n : {2, 3}) {
    threads_on_each_backend(n, [n](Group& group, Context&) {
      Group gate = group.dup();
      constexpr std::size_t kCount = 200000;
      for (const bool drop : {false, true}) {
        auto* const in = filled_memory<float>(group, kCount, 1.0F);
        auto* const out = filled_memory<float>(group, kCount + 100, 0.0F);
        const ConstTensorView from(in, kCount, DType::float32);
        const TensorView to(out + 50, kCount, DType::float32);
        if (group.rank() == 0) {
          Work work = group.iallreduce(from, to);
          if (drop) work = {};
          expect_not_freed(in);
          expect_not_freed(out);
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
      Work received = group.rank() == 0 ? group.irecv(TensorView(letter, 64, DType::uint8), 1) : Work();
      if (group.rank() == 0) expect_not_freed(letter);
      gate.barrier();
      if (group.rank() == 1) group.send(ConstTensorView(letter, 64, DType::uint8), 0);
      received.wait();
      col::free(letter);
      expect_usable(group);
    });
  }
}

TEST_CASE("memory: free refuses while another thread is in the group", "[group][memory]") {
  std::atomic<int> tried{0}, refused{0};
  const std::size_t backends = usable_backends().size();
  threads_on_each_backend(2, [&](Group& group) {
    void* const memory = group.alloc(1000);
    const auto op = Op::user(
        [&](const void* left, const void* right, void* result, std::size_t count, DType dtype) {
          ++tried;  // by a thread that is not inside the call
          const auto free_it = [&] { return error_of([&] { col::free(memory); }).code(); };
          refused += std::async(std::launch::async, free_it).get() == ErrorCode::invalid_argument ? 1 : 0;
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
      INFO(odd_bytes << " bytes");
      const Judge judge = all_end({.code = ErrorCode::mismatch, .rank = n - 1, .promptly = true});
      threads_on_each_backend(n, judge,
                              [&](Group& group) { col::free(group.alloc(group.rank() == n - 1 ? odd_bytes : 1000)); });
    }
  }
}

TEST_CASE("memory: a rank that calls something else than alloc is a mismatch on all", "[group][memory]") {
  threads_on_each_backend(3, all_end({.code = ErrorCode::mismatch, .rank = 1}), [](Group& group) {
    if (group.rank() == 1)
      group.barrier();
    else
      col::free(group.alloc(1000));
  });
}

TEST_CASE("memory: more than there is is refused on all ranks, and the group goes on", "[group][memory]") {
  for (const int n : {1, 2, 4}) {
    threads_on_each_backend(n, [](Group& group) {
      const std::size_t most = std::numeric_limits<std::size_t>::max();
      for (const std::size_t bytes : {std::size_t{1} << 40, std::size_t{1} << 47, std::size_t{1} << 62, most / 2,
                                      most / 2 + 1, most - 4096, most - 64, most - 1, most}) {
        expect_error(ErrorCode::resource, "", [&] { static_cast<void>(group.alloc(bytes)); });
        expect_usable(group);
      }
    });
  }
}

TEST_CASE("memory: shared memory is taken at once, and given back by free", "[group][memory]") {
  processes_on_each_backend(2, [](Group& group) {
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
    processes_on_each_backend(n, [](Group& group) {
      constexpr int kRounds = 20;
      const std::size_t bytes = std::size_t{64} << 20;
      std::size_t before = 0;
      group.barrier();
      for (int round = 0; round <= kRounds; ++round) {
        if (round == 1) before = lines_of("/proc/self/maps");  // the first time takes some other memory for good
        std::optional<Limit> limit;
        if (group.rank() == 1) limit.emplace(RLIMIT_AS, status_of("VmSize") + (bytes >> 1));
        expect_error(ErrorCode::resource, "", [&] { static_cast<void>(group.alloc(bytes)); });
      }
      const std::size_t after = lines_of("/proc/self/maps");
      expect(after < before + kRounds, fmt::format("{} mappings before {} rounds, {} after", before, kRounds, after));
      expect_usable(group);
      col::free(group.alloc(bytes));
    });
  }
}

TEST_CASE("memory: without descriptors on one rank, all get memory or none", "[group][memory]") {
  processes_on_each_backend(3, [](Group& group) {
    group.barrier();
    void* memory = nullptr;
    std::optional<ErrorCode> code;
    {
      std::optional<Limit> limit;
      if (group.rank() == 1) limit.emplace(RLIMIT_NOFILE, 3);
      try {
        memory = group.alloc(100000);
      } catch (const Error& error) {
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
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    constexpr std::size_t kCount = 100000;
    auto* const memory = filled_memory<float>(group, kCount, 1.0F);
    auto* const unused = group.alloc(10);
    const TensorView view(memory, kCount, DType::float32);
    other.allreduce(view);
    expect(memory[0] == 3 && memory[kCount - 1] == 3);
    context.destroy_group("default");
    col::free(unused);
    expect_not_freed(unused);
    const ErrorCode want = error_of([&] { group.barrier(); }).code();
    expect(error_of([&] { static_cast<void>(group.alloc(10)); }).code() == want, "alloc on a destroyed group");
    other.allreduce(view);
    expect(memory[0] == 9 && memory[kCount - 1] == 9);
    std::fill_n(memory, kCount, 2.0F);
    expect_usable(other);
    context.destroy_group("other");
    expect(memory[kCount - 1] == 2);
    col::free(memory);
    expect_not_freed(memory);
  });
}

TEST_CASE("memory: it can be freed and used in a group that broke", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
    Group rest = group.dup();
    auto* const memory = static_cast<float*>(group.alloc(1000 * sizeof(float)));
    const std::size_t count = group.rank() == 1 ? 999 : 1000;
    expect_error(ErrorCode::mismatch, "", [&] { group.allreduce(TensorView(memory, count, DType::float32)); });
    expect_error(ErrorCode::aborted, "", [&] { static_cast<void>(group.alloc(10)); });
    std::fill_n(memory, 1000, 1.0F);
    rest.allreduce(TensorView(memory, 1000, DType::float32));
    expect(memory[999] == 3);
    rest.barrier();
    col::free(memory);
  });
}

TEST_CASE("memory: alloc waits for all ranks, until its deadline", "[group][memory]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    CHECK(all_good(outcomes));
    CHECK(outcomes[0].seconds < kPromptSeconds);
  };
  threads_on_each_backend(2, judge, [](Group& group) {
    Group gate = group.dup();
    if (group.rank() == 0)
      expect_error(ErrorCode::timeout, "", [&] { static_cast<void>(group.alloc(10, {.timeout = 200ms})); });
    gate.barrier();
  });
}

TEST_CASE("memory: alloc while operations are in flight", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<float> data(100000, 1.0F), sum(data.size());
    Work work = group.iallreduce(data, sum);
    auto* const memory = static_cast<float*>(group.alloc(100000 * sizeof(float)));
    if (group.rank() == 1) work.wait();
    std::fill_n(memory, 100000, 2.0F);
    group.allreduce(TensorView(memory, 100000, DType::float32));
    work.wait();
    expect(sum.back() == 3 && memory[99999] == 6);
    col::free(memory);
  });
}

TEST_CASE("memory: groups are found by name, and methods refuse another's", "[group][memory]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
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
  threads_on_each_backend(3, [](Group& group, Context& context) {
    using Vector = std::vector<float, Allocator<float>>;
    const Allocator<float> allocator(group);
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
      group.allgather(ConstTensorView(copy).slice(0, 20000), taken);
      expect(taken[0] == 3 && taken[59999] == 3);
    }
    Allocator<double> other(allocator);
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
  threads_on_each_backend(2, [](Group& group) {
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

TEST_CASE("memory: thousands of allocations leave no mapping, no descriptor and no bytes", "[group][memory][rest]") {
  for (const int n : {2, 3}) {
    processes_on_each_backend(n, [](Group& group) {
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
      const std::size_t maps = lines_of("/proc/self/maps"), descriptors = open_descriptors();
      const std::size_t size = status_of("VmSize"), shared = status_of("RssShmem");
      rounds(group.backend() == "gloo" ? 100 : kInstrumented ? 200 : 500);
      // AddressSanitizer's own come and go; one for each allocation would be 800.
      expect(lines_of("/proc/self/maps") <= maps + (kInstrumented ? 400 : 50),
             fmt::format("{} mappings, then {}", maps, lines_of("/proc/self/maps")));
      expect(open_descriptors() <= descriptors + 8,
             fmt::format("{} descriptors, then {}", descriptors, open_descriptors()));
      expect(status_of("VmSize") <= size + (16 << 20));
      expect(status_of("RssShmem") <= shared + (4 << 20));
    });
  }
}

TEST_CASE("memory: a rank that dies is named by those that wait for it in alloc", "[group][memory]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    CHECK(outcomes[2].signal == SIGKILL);
    check_all(outcomes, {.code = ErrorCode::peer_lost, .rank = 2, .promptly = true}, 2);
  };
  processes_on_each_backend(3, judge, [](Group& group) {
    for (int round = 0;; ++round) {
      if (group.rank() == 2 && round == 5) kill(getpid(), SIGKILL);
      col::free(group.alloc(100000));
    }
  });
}

TEST_CASE("memory: free knows of operations of other groups, and of those that have failed", "[group][memory]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    constexpr std::size_t kCount = 100000;
    auto* const memory = static_cast<float*>(group.alloc((kCount + 1) * sizeof(float)));
    auto* const second = static_cast<float*>(group.alloc(kCount * sizeof(float)));
    if (group.rank() == 0) {
      Work work = other.iallreduce(TensorView(memory + 1, kCount, DType::float32),
                                   TensorView(memory + 1, kCount, DType::float32), {.timeout = 300ms});
      Work dropped = other.iallreduce(TensorView(second, kCount, DType::float32),
                                      TensorView(second, kCount, DType::float32), {.timeout = 300ms});
      expect_not_freed(memory);
      dropped = {};
      expect_error(ErrorCode::timeout, "", [&] { work.wait(); });
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

TEST_CASE("memory: free waits for a reduction that frees memory, too", "[group]") {
  std::atomic<int> started{0}, seen{0};  // by rank 0, and by rank 1
  threads_on_each_backend(2, [&](Group& group) {
    void* const memory = group.alloc(64);
    std::vector<int> in(8, 1), out(in.size());
    std::promise<void> inside;
    std::atomic<bool> begun{false}, frees{false};
    const auto function = [&](const void*, const void*, void*, std::size_t, DType) {
      if (begun.exchange(true) || group.rank() != 0) return;
      inside.set_value();
      while (!frees) std::this_thread::yield();
      for (int i = 0; i < 1000; ++i) {  // until the other thread waits
        error_of([&] { col::free(&in); });
        std::this_thread::yield();
      }
    };
    const auto start = [&] { return group.iallreduce(in, out, {.op = Op::user(function, true), .algorithm = "ring"}); };
    if (group.rank() == 0) {
      // In the thread of the library, as rank 1 starts when no call of this thread can move it on.
      Work after = start().then([](auto&&) {});
      ++started;
      inside.get_future().wait_for(20s);
      frees = true;
      col::free(memory);
      after.wait();
    } else {
      for (const Deadline deadline = Deadline::after(20s); started == seen; std::this_thread::yield())
        expect(!deadline.expired(), "rank 0 starts");
      ++seen;
      start().wait();
      col::free(memory);
    }
    group.barrier();
  });
}

// Private memory at first, and then memory that both ranks have, at the same address: the call is the same.
TEST_CASE("memory: a call that comes again finds other memory in the old place", "[group]") {
  constexpr std::size_t kCount = 100, kBytes = 4096;
  const int file = ::memfd_create("common", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(::ftruncate(file, kBytes) == 0);
  processes_on_each_backend(2, check_good, [&](Group& group) {
    if (group.backend() != "shm") return;
    constexpr int kRights = PROT_READ | PROT_WRITE;
    auto* const place = static_cast<double*>(::mmap(nullptr, kBytes, kRights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const std::span<double> data(place, kCount);
    const auto sum = [&](bool fills) {
      if (fills) std::fill(data.begin(), data.end(), 1.0);
      group.barrier();
      group.allreduce(data);
      expect(std::all_of(data.begin(), data.end(), [](double value) { return value == 2; }));
      group.barrier();
    };
    for (int round = 0; round < 3; ++round) sum(true);
    expect(::mmap(place, kBytes, kRights, MAP_SHARED | MAP_FIXED, file, 0) == place);
    for (int round = 0; round < 200; ++round) sum(group.rank() == 0);
  });
  ::close(file);
}

}  // namespace
}  // namespace col::test

// A rank of a job whose buffers all lie in memory from col::alloc().
//
//   shared_memory_job sums             collectives of many sizes, every element checked
//   shared_memory_job churn            thousands of allocations; compares what the process has before and after
//   shared_memory_job killed CALL DIR  the last rank dies in or before one of many calls of CALL (alloc, allreduce,
//                                      broadcast, alltoall); the others write "CODE RANK" of their error to DIR/RANK
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <col/col.hpp>
#include <col/memory.hpp>

namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
}

// `count` elements with a guard element on either side, from alloc().
class Buffer {
 public:
  Buffer(col::Group& group, std::size_t count)
      : memory_(static_cast<std::int32_t*>(group.alloc((count + 2) * sizeof(std::int32_t)))), count_(count) {
    memory_[0] = memory_[count + 1] = kGuard;
  }
  ~Buffer() { col::detail::free_or_keep(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  col::TensorView view() { return {memory_ + 1, count_, col::DType::int32}; }
  template <class Value>
  void fill(Value value) {
    for (std::size_t i = 0; i < count_; ++i) memory_[1 + i] = static_cast<std::int32_t>(value(i));
  }
  template <class Value>
  void check(const char* what, Value value) const {
    expect(memory_[0] == kGuard && memory_[count_ + 1] == kGuard, std::string(what) + ": what is beside the buffer");
    for (std::size_t i = 0; i < count_; ++i) {
      if (memory_[1 + i] != static_cast<std::int32_t>(value(i)))
        expect(false, std::string(what) + ": element " + std::to_string(i) + " of " + std::to_string(count_));
    }
  }

 private:
  static constexpr std::int32_t kGuard = 0x5eed5eed;
  std::int32_t* memory_;
  std::size_t count_;
};

// Element i of what a rank brings.
std::size_t input(std::size_t rank, std::size_t i) {
  return rank * 1000 + i % 977;
}

void check_sizes(col::Group& group, std::size_t count) {
  const auto n = static_cast<std::size_t>(group.size()), me = static_cast<std::size_t>(group.rank());
  const auto mine = [&](std::size_t i) { return input(me, i); };
  const auto sum = [&](std::size_t i) { return n * input(0, i) + 1000 * (n * (n - 1) / 2); };
  Buffer all(group, n * count), other(group, n * count), part(group, count), result(group, count);
  for (int again = 0; again < 3; ++again) {  // what ranks read of each other is reused at once
    part.fill(mine);
    group.allreduce(part.view(), result.view());
    part.check("allreduce's input", mine);
    result.check("allreduce", sum);
    group.allreduce(part.view());
    part.check("allreduce in place", sum);
    for (int root = 0; root < group.size(); ++root) {
      part.fill(mine);
      group.broadcast(part.view(), {.root = root});
      part.check("broadcast", [&](std::size_t i) { return input(static_cast<std::size_t>(root), i); });
    }
    part.fill(mine);
    group.allgather(part.view(), all.view());
    all.check("allgather", [&](std::size_t i) { return input(i / count, i % count); });
    group.reduce_scatter(all.view(), part.view());
    part.check("reduce_scatter", [&](std::size_t i) { return n * input(me, i); });
    all.fill([&](std::size_t i) { return input(me, i % count) + 7 * (i / count); });
    group.alltoall(all.view(), other.view());
    const auto exchanged = [&](std::size_t i) { return input(i / count, i % count) + 7 * me; };
    other.check("alltoall", exchanged);
    group.alltoall(all.view(), all.view());
    all.check("alltoall in place", exchanged);
  }
}

int sums(col::Group& group) {
  const std::size_t large = (std::size_t{2} << 20) / static_cast<std::size_t>(group.size()) + 3;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{10240}, large})
    check_sizes(group, count);
  std::printf("rank %d: all as expected\n", group.rank());
  return 0;
}

std::size_t mappings() {
  std::ifstream file("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

std::size_t descriptors() {
  std::size_t entries = 0;
  DIR* const directory = opendir("/proc/self/fd");
  expect(directory != nullptr, "/proc/self/fd");
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries;
}

void allocate_and_free(col::Group& group, int rounds, std::mt19937& own) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<void*> pieces;
    for (const std::size_t bytes : {1u, 4096u, 200000u}) pieces.push_back(group.alloc(bytes));
    std::shuffle(pieces.begin(), pieces.end(), own);
    for (void* piece : pieces) col::free(piece);
  }
  group.barrier();
  col::free(group.alloc(1));
}

int churn(col::Group& group) {
  std::mt19937 own(static_cast<unsigned>(group.rank()));
  allocate_and_free(group, 10, own);
  const std::size_t mappings_before = mappings(), descriptors_before = descriptors();
  allocate_and_free(group, 1000, own);
  expect(mappings() <= mappings_before + 50,
         std::to_string(mappings_before) + " mappings, then " + std::to_string(mappings()));
  expect(descriptors() <= descriptors_before + 8,
         std::to_string(descriptors_before) + " descriptors, then " + std::to_string(descriptors()));
  std::printf("rank %d: nothing left\n", group.rank());
  return 0;
}

// Makes the call again and again. The last rank dies: at a call, or soon after some call has begun.
void repeat(col::Group& group, const std::string& call, bool at_a_call, unsigned microseconds) {
  const std::size_t count = std::size_t{1} << 18;
  const auto n = static_cast<std::size_t>(group.size());
  Buffer data(group, n * count);
  for (int round = 0;; ++round) {
    if (group.rank() == group.size() - 1 && round == 10) {
      if (at_a_call) kill(getpid(), SIGKILL);
      std::thread([=] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));  // the random moment is what is tested
        kill(getpid(), SIGKILL);
      }).detach();
    }
    if (call == "alloc")
      col::free(group.alloc(100000));
    else if (call == "allreduce")
      group.allreduce(data.view());
    else if (call == "broadcast")
      group.broadcast(data.view(), {.root = group.size() - 1});
    else
      group.alltoall(data.view(), data.view());
  }
}

int killed(col::Group& group, const std::string& call, const std::string& directory) {
  signal(SIGTERM, SIG_IGN);  // the launcher sends it as soon as a rank is dead; we have our own word to say first
  std::random_device random;
  try {
    repeat(group, call, random() % 2 == 0, random() % 20000);
  } catch (const col::Error& error) {
    std::ofstream(directory + "/" + std::to_string(group.rank()))
        << to_string(error.code()) << ' ' << error.rank() << '\n';
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    col::Group group = col::init();
    int code = 2;
    if (words == std::vector<std::string>{"sums"}) code = sums(group);
    if (words == std::vector<std::string>{"churn"}) code = churn(group);
    if (words.size() == 3 && words[0] == "killed") return killed(group, words[1], words[2]);
    col::finalize();
    return code;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}

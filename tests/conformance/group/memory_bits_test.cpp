// Memory that the ranks share: collectives on it give the bits that they give on any other.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/memory_trials.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

struct Piece {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

// A rank that allocates, frees and calls as all ranks agree (`common`), and frees and places as it likes (`own`).
class Program {
 public:
  Program(Group& group, unsigned seed) : common_(seed), own_(seed + 1 + static_cast<unsigned>(group.rank())) {
    // The same ranks, the same in another order, and fewer of them.
    groups_ = {group, group.dup(), group.split(0, -group.rank()), group.split(group.rank() % 2)};
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      Group& group = groups_[common_() % groups_.size()];
      switch (common_() % 5) {
        case 0:
          allocate(group);
          break;
        case 1:
          if (own_() % 3 != 0) release();
          break;
        default:
          make_calls(group);
      }
    }
    while (!pieces_.empty()) release();
  }

 private:
  void allocate(Group& group) {
    const std::size_t sizes[] = {0, 1, 64 + common_() % 5000, 100000 + common_() % 100000, std::size_t{3} << 19};
    const std::size_t bytes = sizes[common_() % std::size(sizes)];
    auto* const at = static_cast<std::byte*>(group.alloc(bytes));
    expect(at != nullptr && reinterpret_cast<std::uintptr_t>(at) % 64 == 0);
    expect(std::all_of(at, at + bytes, [](std::byte byte) { return byte == std::byte{0}; }), "not zeroed");
    pieces_.push_back({at, bytes});
  }

  void release() {
    if (pieces_.empty()) return;
    const std::size_t victim = own_() % pieces_.size();
    col::free(pieces_[victim].at);
    pieces_[victim] = pieces_.back();
    pieces_.pop_back();
  }

  MemoryCall draw_call(const Group& group, bool async) {
    MemoryCall call;
    call.collective = tested_collectives()[common_() % tested_collectives().size()];
    call.dtype = kTypes[common_() % std::size(kTypes)];
    const auto counts = counts_of(call.dtype);
    call.count = counts[common_() % counts.size()] + common_() % 50;
    call.op = static_cast<int>(common_() % kOps);
    call.root = static_cast<int>(common_() % 8) % group.size();
    call.in_place = common_() % 2 == 0;
    call.async = async;
    return call;
  }

  // Memory for a slab: some piece that has room and is not taken, or private.
  std::byte* place(std::size_t bytes, std::vector<bool>& taken, std::vector<Bytes>& private_slabs) {
    for (int attempt = 0; attempt < 4 && !pieces_.empty(); ++attempt) {
      const std::size_t i = own_() % pieces_.size();
      if (taken[i] || pieces_[i].bytes < bytes) continue;
      taken[i] = true;
      return pieces_[i].at + own_() % (pieces_[i].bytes - bytes + 1);
    }
    private_slabs.emplace_back(bytes);
    return private_slabs.back().data();
  }

  // One, or several in flight at once, that ranks wait for in different orders.
  void make_calls(Group& group) {
    const bool async = common_() % 2 == 0;
    const std::size_t flights = async ? 1 + common_() % 3 : 1;
    std::vector<Trial> trials;
    std::vector<Bytes> wants, private_slabs;
    std::vector<bool> taken(pieces_.size());
    for (std::size_t i = 0; i < flights; ++i) {
      const MemoryCall call = draw_call(group, async);
      wants.push_back(on_private_memory(group, call, ++salt_));
      trials.emplace_back(group, call, salt_);
    }
    for (Trial& trial : trials) {
      std::byte* const first = place(trial.first_bytes(), taken, private_slabs);
      trial.begin(group, first, place(trial.second_bytes(), taken, private_slabs));
    }
    std::vector<std::size_t> order(flights);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), own_);
    for (const std::size_t i : order) expect_same(trials[i].end(), wants[i], trials[i].describe());
  }

  std::mt19937 common_, own_;
  std::vector<Group> groups_;
  std::vector<Piece> pieces_;
  unsigned salt_ = 0;
};

TEST_CASE("memory: every collective gives the same bits on it as on private memory", "[group][memory][rest]") {
  for (const int n : kInstrumented ? std::vector{3} : std::vector{1, 2, 3, 8}) {
    for (const bool in_place : {false, true}) {
      threads_on_each_backend(n, [&](Group& group) {
        const bool is_gloo = group.backend() == "gloo";
        if (is_gloo && n != 3) return;  // has no shared memory; one size shows that it works
        compare_all(group, in_place, !is_gloo && n == 3 && !kInstrumented);
      });
    }
  }
}

TEST_CASE("memory: between processes as well", "[group][memory]") {
  processes_on_each_backend(2, [](Group& group) { compare_all(group, true, false); });
}

TEST_CASE("memory: the same bits by every algorithm, in rank order, compressed", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
    Homes homes(group, kSlabBytes);
    unsigned salt = 0;
    for (const Collective collective : tested_collectives()) {
      std::vector<std::string> names = group.algorithms(collective);
      names.emplace_back();
      for (const std::string& name : names) {
        for (const std::size_t count : {17u, 20000u}) {
          for (const int kind : {0, 1, 2}) {  // as it comes, in rank order, compressed
            MemoryCall call{collective, kind == 1 ? DType::float32 : DType::bfloat16, count, 0, 2, ++salt % 2 == 0};
            call.algorithm = name;
            call.deterministic = kind == 1;
            call.compress = kind == 2;
            std::optional<ErrorCode> refused;
            try {
              on_private_memory(group, call, salt);
            } catch (const Error& error) {
              refused = error.code();
            }
            if (!refused) compare(group, homes, call, salt);
            if (refused) expect(error_of([&] { homes.run(group, call, salt, 0); }).code() == *refused, name);
          }
        }
      }
    }
  });
}

TEST_CASE("memory: the same bits when calls are compared first, and when a thread moves them on", "[group][memory]") {
  for (const auto& [name, value] : {std::pair("COL_CHECK", "strict"), std::pair("COL_PROGRESS", "thread")}) {
    const Setting setting(name, value);
    threads_on_each_backend(3, [](Group& group) {
      Homes homes(group, kSlabBytes);
      unsigned salt = 0;
      for (const Collective collective : tested_collectives()) {
        for (const std::size_t count : counts_of(DType::float32)) {
          ++salt;
          compare(group, homes, {collective, DType::float32, count, 0, 1, salt % 2 == 0, salt % 3 == 0}, salt);
        }
      }
    });
  }
}

TEST_CASE("memory: random programs of alloc, free and calls", "[group][memory][rest]") {
  const unsigned seed = std::random_device()();
  for (const int n : kInstrumented ? std::vector{3} : std::vector{1, 2, 3, 4}) {
    INFO("seed " << seed);
    threads_on_each_backend(n, [&](Group& group) { Program(group, seed).run(group.backend() == "gloo" ? 50 : 200); });
  }
  INFO("processes, seed " << seed);
  processes_on_each_backend(4, [&](Group& group) { Program(group, seed).run(group.backend() == "gloo" ? 50 : 400); });
}

TEST_CASE("memory: messages to and from it", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
    const int next = (group.rank() + 1) % 3, previous = (group.rank() + 2) % 3;
    for (const std::size_t count : {1u, 1000u, 300000u}) {
      auto* const memory = static_cast<int*>(group.alloc(2 * count * sizeof(int)));
      std::fill_n(memory, count, group.rank() + 5);
      group.sendrecv(ConstTensorView(memory, count, DType::int32), next,
                     TensorView(memory + count, count, DType::int32), previous);
      expect(std::count(memory, memory + count, group.rank() + 5) == static_cast<std::ptrdiff_t>(count));
      expect(std::count(memory + count, memory + 2 * count, previous + 5) == static_cast<std::ptrdiff_t>(count));
      col::free(memory);
    }
  });
}

TEST_CASE("memory: a call that has failed writes no more, whoever comes late", "[group][memory]") {
  constexpr std::size_t kCount = 60000;
  using enum Collective;
  for (const Collective collective : {allreduce, allgather, broadcast, gather, scatter, alltoall, reduce_scatter}) {
    threads_on_each_backend(3, [&](Group& group) {
      Group gate = group.dup();
      auto* const in = static_cast<std::int32_t*>(group.alloc(kCount * sizeof(std::int32_t)));
      auto* const out = static_cast<std::int32_t*>(group.alloc(kCount * sizeof(std::int32_t)));
      const bool late = group.rank() == 2;
      // Of the late rank's call, only what it does to the others matters.
      const auto try_call = [&] {
        const MemoryCall call{collective, DType::int32, kCount, 0, row_of(collective).rooted ? 2 : 0};
        const Lengths lengths = lengths_of(reference_of(call, 3), group.rank());
        try {
          run_by_name(group, {collective, {in, lengths.in, DType::int32}, {out, lengths.out, DType::int32}, {}, {}},
                      {.root = call.root, .timeout = 200ms});
        } catch (const Error&) {
        }
      };
      std::fill_n(in, kCount, 1);
      if (!late) try_call();
      std::fill_n(in, kCount, 10 + group.rank());
      std::fill_n(out, kCount, 20 + group.rank());
      gate.barrier();
      if (late) try_call();
      gate.barrier();
      if (!late) {
        expect(std::count(in, in + kCount, 10 + group.rank()) == kCount,
               fmt::format("{}: an input was written", to_string(collective)));
        expect(std::count(out, out + kCount, 20 + group.rank()) == kCount,
               fmt::format("{}: an output was written", to_string(collective)));
      }
      gate.barrier();
      col::free(in);
      col::free(out);
    });
  }
}

TEST_CASE("memory: the same bits in calls of many slices", "[group][memory]") {
  threads_on_each_backend(3, [](Group& group) {
    Homes homes(group, std::size_t{5} << 20);
    unsigned salt = 0;
    for (const Collective collective : tested_collectives()) {
      ++salt;
      compare(group, homes,
              {collective, DType::float32, kInstrumented ? (1 << 17) + 3 : (1 << 20) + 3, 0, 1, salt % 2 == 0}, salt);
    }
  });
}

}  // namespace
}  // namespace col::test

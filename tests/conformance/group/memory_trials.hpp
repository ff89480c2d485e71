// Collectives on memory that the ranks share, beside the same calls on private memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/collectives.hpp"

namespace col::test {

// Under a sanitizer everything takes several times as long: there is less of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

// `count` elements of memory from alloc(), all of that value.
template <class T>
T* filled_memory(Group& group, std::size_t count, T value) {
  auto* const memory = static_cast<T*>(group.alloc(count * sizeof(T)));
  std::fill_n(memory, count, value);
  return memory;
}

using Bytes = std::vector<std::byte>;

// Not ==, which goes byte by byte where nothing is optimised: that was two thirds of the time of these cases.
inline bool same_bytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

constexpr std::size_t kGuard = 64;   // bytes before and after every buffer that no call may touch
constexpr std::size_t kTile = 4093;  // elements after which inputs repeat: no block or slice is a multiple of it

template <class Number>
inline void fill_with_numbers(Bytes& tile, std::mt19937& random) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const float odd[] = {kNaN, -kNaN, 0.0F, -0.0F, kInfinity, -kInfinity};
  std::uniform_real_distribution<float> numbers(-8, 8);
  for (std::size_t i = 0; i < kTile; ++i) {
    const Number number(i % 29 == 0 ? odd[i % std::size(odd)] : numbers(random));
    std::memcpy(tile.data() + i * sizeof number, &number, sizeof number);
  }
}

// Numbers whose sums are rounded, so that another order of adding them shows, and a few that are none.
inline Bytes make_tile(DType dtype) {
  std::mt19937 random(7);
  Bytes tile(kTile * size_of(dtype));
  if (dtype == DType::float32) {
    fill_with_numbers<float>(tile, random);
  } else if (dtype == DType::float64) {
    fill_with_numbers<double>(tile, random);
  } else if (dtype == DType::bfloat16) {
    fill_with_numbers<col::bfloat16>(tile, random);
  } else {
    for (std::byte& byte : tile) byte = static_cast<std::byte>(random());
  }
  return tile;
}

// Fills with what depends on `salt` alone.
inline void fill(std::byte* to, std::size_t bytes, DType dtype, unsigned salt) {
  static const std::map<DType, Bytes> tiles = [] {
    std::map<DType, Bytes> all;
    for (const DType type : {DType::float32, DType::bfloat16, DType::int8, DType::float64}) all[type] = make_tile(type);
    return all;
  }();
  const Bytes& tile = tiles.at(dtype);
  for (std::size_t from = salt * 2654435761u % kTile * size_of(dtype), done = 0; done < bytes; from = 0) {
    const std::size_t some = std::min(bytes - done, tile.size() - from);
    std::memcpy(to + done, tile.data() + from, some);
    done += some;
  }
}

// ---- Calls

struct MemoryCall {
  Collective collective = Collective::allreduce;
  DType dtype = DType::float32;
  std::size_t count = 0;  // of the vector; where it is cut into blocks, of all of them together, rounded up
  int op = 0;             // of the operators below
  int root = 0;
  bool in_place = false;
  bool async = false;
  std::string algorithm = {};
  bool deterministic = false;
  bool compress = false;
};

inline const std::vector<Collective>& tested_collectives() {
  using enum Collective;
  static const std::vector<Collective> kAll = {allreduce,  reduce,   broadcast,      allgather,
                                               allgatherv, gather,   reduce_scatter, reduce_scatterv,
                                               scatter,    alltoall, scan,           exscan};
  return kAll;
}

template <class Number>
inline void add(const void* left, const void* right, void* result, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Number a{}, b{};
    std::memcpy(&a, static_cast<const std::byte*>(left) + i * sizeof a, sizeof a);
    std::memcpy(&b, static_cast<const std::byte*>(right) + i * sizeof b, sizeof b);
    Number sum{};
    if constexpr (std::is_same_v<Number, col::bfloat16>)
      sum = col::bfloat16(static_cast<float>(a) + static_cast<float>(b));
    else
      sum = static_cast<Number>(a + b);
    std::memcpy(static_cast<std::byte*>(result) + i * sizeof sum, &sum, sizeof sum);
  }
}

inline void add_any(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
  if (dtype == DType::float32) return add<float>(left, right, result, count);
  if (dtype == DType::float64) return add<double>(left, right, result, count);
  if (dtype == DType::bfloat16) return add<col::bfloat16>(left, right, result, count);
  add<std::int8_t>(left, right, result, count);
}

// Not commutative: the rank order shows.
inline void take_right(const void*, const void* right, void* result, std::size_t count, DType dtype) {
  std::memmove(result, right, count * size_of(dtype));
}

constexpr int kOps = 6;

inline Op op_of(int kind, int rank) {
  switch (kind) {
    case 0:
      return ReduceOp::sum;
    case 1:
      return ReduceOp::max;
    case 2:
      return ReduceOp::avg;
    case 3:
      return Op::premul_sum(rank + 2);
    case 4:
      return Op::user(add_any, true, "add");
    default:
      return Op::user(take_right, false, "take_right");
  }
}

// Equal blocks, or such of which some are empty.
inline tools::ReferenceCall reference_of(const MemoryCall& call, int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t block = (call.count + n - 1) / n;
  tools::ReferenceCall reference{.collective = call.collective, .size = size, .root = call.root};
  reference.count = row_of(call.collective).has_blocks() ? block : call.count;
  for (std::size_t i = 0; i < n && row_of(call.collective).has_counts(); ++i)
    reference.counts.push_back(call.count == 0 || i % 3 == 1 ? 0 : block + 5 * i);
  return reference;
}

// One rank's part of one call, anywhere. A buffer lies in a slab, with guard zones around it; in place, both lie in the
// first.
class Trial {
 public:
  Trial(const Group& group, const MemoryCall& call, unsigned salt)
      : call_(call),
        salt_(salt),
        rank_(group.rank()),
        reference_(reference_of(call, group.size())),
        lengths_(lengths_of(reference_, rank_)),
        one_(call.in_place && call.collective != Collective::broadcast),
        first_bytes_(2 * kGuard + unit() * (one_ ? std::max(lengths_.in, lengths_.out) : lengths_.in)),
        second_bytes_(2 * kGuard + unit() * (one_ ? 0 : lengths_.out)) {}

  std::size_t unit() const { return size_of(call_.dtype); }
  std::size_t first_bytes() const { return first_bytes_; }
  std::size_t second_bytes() const { return second_bytes_; }

  void begin(Group& group, std::byte* first, std::byte* second) {
    first_ = first;
    second_ = second;
    prepare(first, second);
    std::byte* in = first + kGuard + (one_ && lengths_.in < lengths_.out ? lengths_.inner * unit() : 0);
    std::byte* out = one_ ? first + output_at() : second + (output_at() - first_bytes_);
    Options options;
    if (row_of(call_.collective).reduces()) options.op = op_of(call_.op, rank_);
    options.root = call_.root;
    options.algorithm = call_.algorithm;
    options.deterministic = call_.deterministic;
    options.compress = call_.compress;
    const Call call{call_.collective,
                    {in, lengths_.in, call_.dtype},
                    {out, lengths_.out, call_.dtype},
                    lengths_.in_counts,
                    lengths_.out_counts};
    work_ = call_by_name(group, call, options, call_.async);
  }

  // What both slabs hold when it has ended; throws when more than the output has changed.
  Bytes end() {
    work_.wait();
    Bytes image(first_, first_ + first_bytes_);
    image.insert(image.end(), second_, second_ + second_bytes_);
    Bytes allowed(image.size());
    prepare(allowed.data(), allowed.data() + first_bytes_);
    const bool is_source = call_.collective == Collective::broadcast && rank_ == call_.root;
    if (gets_output(reference_, rank_) && !is_source)
      std::memcpy(allowed.data() + output_at(), image.data() + output_at(), lengths_.out * unit());
    expect(same_bytes(allowed, image), "memory was changed that is no output: " + describe());
    return image;
  }

  std::string describe() const {
    return fmt::format("{} '{}' of {} {}, op {}, root {}, salt {}{}{}{}{}, rank {}", to_string(call_.collective),
                       call_.algorithm, call_.count, to_string(call_.dtype), call_.op, call_.root, salt_,
                       call_.in_place ? ", in place" : "", call_.async ? ", async" : "",
                       call_.deterministic ? ", deterministic" : "", call_.compress ? ", compress" : "", rank_);
  }

 private:
  // In the image of both slabs.
  std::size_t output_at() const {
    if (!one_) return first_bytes_ + kGuard;
    return kGuard + (lengths_.out < lengths_.in ? lengths_.inner * unit() : 0);
  }
  void prepare(std::byte* first, std::byte* second) const {
    const auto mine = salt_ * 64 + static_cast<unsigned>(rank_) * 2;
    fill(first, first_bytes_, call_.dtype, mine);
    fill(second, second_bytes_, call_.dtype, mine + 1);
  }

  MemoryCall call_;
  unsigned salt_;
  int rank_;
  tools::ReferenceCall reference_;
  Lengths lengths_;
  bool one_;
  std::size_t first_bytes_, second_bytes_;
  std::byte* first_ = nullptr;
  std::byte* second_ = nullptr;
  Work work_;
};

// What the same call gives on private memory.
inline Bytes on_private_memory(Group& group, const MemoryCall& call, unsigned salt) {
  Trial trial(group, call, salt);
  Bytes first(trial.first_bytes()), second(trial.second_bytes());
  trial.begin(group, first.data(), second.data());
  return trial.end();
}

// ---- Where the buffers lie

// Two allocations of a rank, of which the first has room for both slabs, and private memory of as much.
class Homes {
 public:
  Homes(Group& group, std::size_t slab_bytes) : private_(3 * slab_bytes), slab_bytes_(slab_bytes) {
    shared_ = {static_cast<std::byte*>(group.alloc(2 * slab_bytes)), static_cast<std::byte*>(group.alloc(slab_bytes))};
  }
  ~Homes() {
    for (std::byte* memory : shared_) col::detail::free_or_keep(memory);
  }
  Homes(const Homes&) = delete;
  Homes& operator=(const Homes&) = delete;

  static constexpr int kWays = 8;

  // Runs the call with its slabs placed in one of kWays ways, on which all ranks agree.
  Bytes run(Group& group, const MemoryCall& call, unsigned salt, int way) {
    Trial trial(group, call, salt);
    const auto [first, second] = place(trial, group, salt, way);
    expect(first + trial.first_bytes() <= second || second + trial.second_bytes() <= first, "the test's slabs overlap");
    trial.begin(group, first, second);
    return trial.end();
  }

 private:
  using Places = std::pair<std::byte*, std::byte*>;

  Places place(const Trial& trial, const Group& group, unsigned salt, int way) {
    const auto rank = static_cast<unsigned>(group.rank()), size = static_cast<unsigned>(group.size());
    std::byte* const near = private_.data();
    std::byte* const far = near + 2 * slab_bytes_;
    const std::size_t after_first = (trial.first_bytes() + 63) / 64 * 64;
    switch (way) {
      case 0:  // in two allocations, from their beginnings
        return {shared_[0], shared_[1]};
      case 1:  // in one, at elements that differ by rank, and the other way round
        return {shared_[0] + slab_bytes_ + trial.unit() * (1 + rank * 7 % 13), shared_[0] + trial.unit() * (rank + 3)};
      case 2:  // at odd bytes
        return {shared_[0] + 1 + 2 * (rank % 5), shared_[0] + after_first + 23 + 2 * rank};
      case 3:  // one rank is private
        return rank == salt % size ? Places{near, far} : Places{shared_[0], shared_[0] + after_first};
      case 4:
        return {shared_[0] + trial.unit(), far};
      case 5:
        return {near, shared_[1] + trial.unit() * rank};
      case 6:  // one rank is shared
        return rank != salt % size ? Places{near, far} : Places{shared_[1], shared_[0]};
      default: {
        std::mt19937 random(salt * 31 + rank);
        std::byte* const first = random() % 2 == 0 ? shared_[0] : near;
        std::byte* const second = random() % 2 == 0 ? shared_[1] : far;
        return {first + random() % 200, second + random() % 200};
      }
    }
  }

  std::vector<std::byte*> shared_;
  Bytes private_;
  std::size_t slab_bytes_;
};

// The bits of the private call; `what` is for the message.
inline void expect_same(const Bytes& got, const Bytes& want, const std::string& what) {
  if (same_bytes(got, want)) return;
  const auto at = std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first - got.begin();
  expect(false, fmt::format("other bits than on private memory, from byte {} of {}: {}", at, want.size(), what));
}

// In all ways; over a backend without shared memory, and therefore without ways of its own, in two.
inline void compare(Group& group, Homes& homes, const MemoryCall& call, unsigned salt) {
  const Bytes want = on_private_memory(group, call, salt);
  for (int i = 0; i < (group.backend() == "gloo" ? 2 : Homes::kWays); ++i) {
    const int way = (static_cast<int>(salt) + i) % Homes::kWays;
    expect_same(homes.run(group, call, salt, way), want,
                fmt::format("way {}, {}", way, Trial(group, call, salt).describe()));
  }
}

constexpr DType kTypes[] = {DType::float32, DType::bfloat16, DType::int8, DType::float64};
constexpr std::size_t kSlabBytes = (1 << 20) + (1 << 14);

// Elements of the sizes at which paths change: none, one, a few, 40 KiB, 1 MiB and a bit.
inline std::vector<std::size_t> counts_of(DType dtype) {
  return {0, 1, 17, 40960 / size_of(dtype), (1 << 20) / size_of(dtype) + 3};
}

// Small calls in all combinations of type, operator and root, or (not thorough) as the large ones: each combination
// somewhere.
inline void compare_all(Group& group, bool in_place, bool thorough) {
  Homes homes(group, kSlabBytes);
  unsigned salt = in_place ? 1000 : 0, turn = 0;
  for (const Collective collective : tested_collectives()) {
    const int ops = row_of(collective).reduces() ? kOps : 1, roots = row_of(collective).rooted ? group.size() : 1;
    for (const DType dtype : kTypes) {
      for (const std::size_t count : counts_of(dtype)) {
        const int combinations = ops * roots, chosen = static_cast<int>(++turn * 7) % combinations;
        for (int i = 0; i < combinations; ++i) {
          if (i != chosen && !(thorough && count <= 17)) continue;
          ++salt;
          compare(group, homes, {collective, dtype, count, i % ops, i / ops, in_place, salt % 3 == 0}, salt);
        }
      }
    }
  }
}

}  // namespace col::test

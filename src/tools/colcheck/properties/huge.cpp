// More than 2^31 elements, and more than 2^32 bytes: no length is kept in 32 bits.
//
// Inputs are mappings of which a few pages are ever written: around the ends of blocks, around powers of two, at the
// end, and at strides; outputs are looked at there.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/element.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "launch/job/small_file.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kHugeElements =
    (std::size_t{1} << 31) + 3;                            // one more than 32 bits with a sign can tell, and odd
constexpr std::size_t kHalf = (std::size_t{1} << 30) + 3;  // two such blocks are more, too
constexpr std::size_t kHugeBytes = (std::size_t{1} << 32) + 24;
constexpr std::size_t kSpare = std::size_t{1} << 30;  // of memory, for everything else
constexpr auto kHugeTimeout = std::chrono::minutes(2);

struct Wanted {
  Primitive primitive;
  DType dtype;
  std::size_t count;
  bool on_every_backend = false;
  std::string_view algorithm = {};  // empty: any
};
// Few, as most of the time goes into pages that are new. All but two have messages or offsets of more than 2^31 bytes;
// those have that many elements in all.
constexpr std::array kWanted = {
    Wanted{Primitive::broadcast, DType::uint8, kHugeElements, true},
    Wanted{Primitive::allreduce, DType::int8, kHugeElements, false, "mst"},
    Wanted{Primitive::send_recv, DType::uint8, kHugeElements},
    Wanted{Primitive::allgather, DType::uint8, kHalf},
    Wanted{Primitive::gather, DType::uint8, kHugeElements},
    Wanted{Primitive::scatter, DType::uint8, kHugeElements},
    Wanted{Primitive::reduce_scatter, DType::int8, kHalf},
    Wanted{Primitive::broadcast, DType::float64, kHugeBytes / 8, false, "chain_pipelined"},
};

// The wanted algorithm if --algo lets it through, else another.
std::optional<Form> form_for(const Draw& draw, const Wanted& wanted, int ranks) {
  std::optional<Form> found;
  for (const Form& form : draw.forms_of(wanted.primitive)) {
    if (form.is_native() || !serves(form, ranks)) continue;
    if (!found || form.algorithm == wanted.algorithm) found = form;
  }
  return found;
}

void add_huge(Draw& draw) {
  if (draw.quick() || draw.ranks().empty()) return;
  const int ranks = draw.ranks().front();
  const std::vector<std::string>& backends = draw.selection().backends;
  std::size_t turn = 0;
  for (const Wanted& wanted : kWanted) {
    const auto form = form_for(draw, wanted, ranks);
    ++turn;
    for (std::size_t i = 0; form && i < backends.size(); ++i) {
      if (!wanted.on_every_backend && i != turn % backends.size()) continue;
      Case& c = draw.add_on(*form, ranks);
      c.backend = backends[i];
      c.dtype = wanted.dtype;
      c.op = Operator::sum;
      c.count = wanted.count;
    }
  }
}

// ---- Memory

// Zeros that take room once they are written.
class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot map memory");
    ::madvise(data_, bytes_, MADV_HUGEPAGE);  // only faster
  }
  ~Mapping() { ::munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

// Bytes that are available without swapping, by the kernel's estimate, or less if a control group of this process
// allows less. Nothing if the system does not say.
std::optional<std::uint64_t> available_memory() {
  std::optional<std::uint64_t> left;
  const auto take = [&left](std::uint64_t more) { left = std::min(left.value_or(more), more); };
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kibibytes = 0; file >> key >> kibibytes; std::getline(file, unit)) {
    if (key == "MemAvailable:") take(kibibytes << 10);
  }
  constexpr std::pair<const char*, const char*> kVersions[] = {{"/memory.max", "/memory.current"},
                                                               {"/memory.limit_in_bytes", "/memory.usage_in_bytes"}};
  for (const std::string& group : launch::control_groups("memory")) {
    for (const auto& [limit_file, usage_file] : kVersions) {
      const auto limit = launch::read_number(group + limit_file), usage = launch::read_number(group + usage_file);
      if (limit && usage) take(static_cast<std::uint64_t>(std::max(*limit - *usage, 0LL)));
    }
  }
  return left;
}

// What all ranks together will write, if all of them are on this host: outputs, and what reductions keep meanwhile.
std::uint64_t needed_bytes(const Case& c, int size) {
  const auto writers = static_cast<std::uint64_t>(c.primitive == Primitive::gather ? 1 : size);
  const std::uint64_t outputs = sides_of(c, size).out * size_of(c.dtype) * writers;
  return (is_reduction(c.primitive) ? 2 : 1) * outputs + kSpare;
}

// Ranks may see different amounts, but must decide alike.
bool all_agree(Group& group, bool self) {
  std::uint8_t agreed = self ? 1 : 0;
  group.allreduce(std::span(&agreed, 1), {.op = ReduceOp::min});
  return agreed != 0;
}

// ---- Values

using Indices = std::set<std::size_t>;

// Where a vector of so many elements, in `blocks` blocks, is looked at.
Indices places_in(std::size_t count, int blocks) {
  constexpr std::size_t kStrides = 29;
  Indices places;
  const auto add_around = [&](std::size_t middle) {
    for (std::size_t i = middle > 3 ? middle - 3 : 0; i < middle + 4 && i < count; ++i) places.insert(i);
  };
  for (int power = 29; power < 34; ++power) add_around(std::size_t{1} << power);
  for (int block = 0; block <= 2 * blocks; ++block)
    add_around(count / static_cast<std::size_t>(2 * blocks) * static_cast<std::size_t>(block));
  for (std::size_t i = 0; i <= kStrides; ++i) add_around(count / kStrides * i);
  add_around(count);
  return places;
}

class HugeCall {
 public:
  HugeCall(const Case& c, int rank, int size)
      : c_(c),
        rank_(rank),
        size_(size),
        sides_(sides_of(c, size)),
        call_{.collective = collective_of(c.primitive).value_or(Collective::barrier),
              .size = size,
              .root = c.root,
              .count = c.count},
        segments_(output_segments(call_, rank)),
        given_(places_in(sides_.in, size)),
        block_(std::min(sides_.in, sides_.out)),
        in_(sides_.in * size_of(c.dtype)),
        out_(sides_.out * size_of(c.dtype)) {
    if (c_.primitive == Primitive::broadcast && rank_ != c_.root) return;
    std::byte* const data = c_.primitive == Primitive::broadcast ? out_.data() : in_.data();
    for (const std::size_t i : given_) put(data, i, value_of(rank_, i));
  }

  Views views() const { return {.in = {in_.data(), sides_.in, c_.dtype}, .out = {out_.data(), sides_.out, c_.dtype}}; }

  std::string problem() const {
    if (c_.primitive != Primitive::broadcast) {
      for (const std::size_t i : given_) {
        if (get(in_.data(), i) != value_of(rank_, i)) return fmt::format("element {} of the input was changed", i);
      }
    }
    if (c_.primitive == Primitive::gather && rank_ != c_.root) return {};
    for (const std::size_t i : places_to_look_at()) {
      const int wanted = wanted_at(i), got = get(out_.data(), i);
      if (got != wanted) return fmt::format("element {} of {} of the output is {}, not {}", i, sides_.out, got, wanted);
    }
    return {};
  }

 private:
  // Whatever went into the wrong place would be found here too.
  Indices places_to_look_at() const {
    Indices places = places_in(sides_.out, size_);
    for (const std::size_t i : given_) {
      for (int r = 0; r < size_; ++r) {
        const std::size_t distance = static_cast<std::size_t>(r) * block_;
        if (i + distance < sides_.out) places.insert(i + distance);
        if (i >= distance && i - distance < sides_.out) places.insert(i - distance);
      }
    }
    return places;
  }

  // Of the input; zero where nothing was written.
  int value_of(int rank, std::size_t index) const {
    if (!given_.contains(index)) return 0;
    return 1 + static_cast<int>(mix(c_.seed, static_cast<std::uint64_t>(rank), index) % 60);
  }

  int wanted_at(std::size_t index) const {
    if (c_.primitive == Primitive::send_recv) return value_of(source_of(c_, rank_, size_), index);
    const tools::Segment& from = segments_[index / segments_[0].count];
    const std::size_t begin = static_cast<std::size_t>(from.block) * c_.count;
    return tools::element_at<int>(call_, from, begin + index % from.count,
                                  [&](int rank, int /*block*/, std::size_t i) { return value_of(rank, i); });
  }

  void put(std::byte* data, std::size_t index, int value) const {
    with_element(c_.dtype, [&](auto element) {
      element = element_of<decltype(element)>(static_cast<float>(value));
      std::memcpy(data + index * sizeof element, &element, sizeof element);
    });
  }
  int get(const std::byte* data, std::size_t index) const {
    return with_element(c_.dtype, [&](auto element) {
      std::memcpy(&element, data + index * sizeof element, sizeof element);
      return static_cast<int>(value_of_element(element));
    });
  }

  const Case& c_;
  const int rank_, size_;
  const Sides sides_;
  const tools::ReferenceCall call_;
  const std::vector<tools::Segment> segments_;  // of the output; none of send_recv
  const Indices given_;
  const std::size_t block_;
  Mapping in_, out_;
};

std::string problem_of_call(Group& group, const Case& c) {
  const HugeCall call(c, group.rank(), group.size());
  call_plainly(group, c, call.views(), options_of(c, group.rank()));
  return call.problem();
}

Finding run_huge(Rank& rank, const Case& c) {
  // A group keeps its scratch for as long as it lives: this one must not live long.
  Group group = rank.make_group(std::max<Duration>(rank.timeout(), kHugeTimeout));
  const std::uint64_t needed = needed_bytes(c, rank.size());
  const auto available = available_memory();
  std::string problem;
  const bool enough = all_agree(group, available && *available >= needed);
  if (enough) problem = problem_of_call(group, c);
  group.barrier();  // so that the next case finds all memory given back
  rank.drop(group);
  if (enough) return Finding::of(std::move(problem));
  return Finding::skip(
      fmt::format("needs {} MiB of memory, and {} MiB are available", needed >> 20, available.value_or(0) >> 20));
}

}  // namespace

const Property kHuge =
    in_group("huge", "vectors of more than 2^31 elements, or 2^32 bytes, are right wherever one looks", &add_huge,
             &run_huge, OnGpus::nothing, 2);

}  // namespace col::colcheck

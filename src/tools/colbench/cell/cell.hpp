// What one row of colbench measures.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <col/types.hpp>

namespace col::colbench {

// What else than collectives can be timed.
enum class Extra : std::uint8_t {
  pingpong,      // two ranks in turn; the time is half of the round trip
  oneway,        // one rank sends a window of messages, the other acknowledges the last: time per message
  bidirectional  // as oneway, both directions at once
};
inline constexpr int kExtraCount = 3;

// A collective, or one of Extra. They are numbered from 0: the collectives as in col::Collective.
class Operation {
 public:
  using enum Collective;
  using enum Extra;

  constexpr Operation(Collective collective) : number_(static_cast<std::uint8_t>(collective)) {}
  constexpr Operation(Extra extra)
      : number_(static_cast<std::uint8_t>(collectives() + static_cast<std::uint8_t>(extra))) {}
  template <class Number>
  requires std::is_integral_v<Number>
  constexpr explicit Operation(Number number) : number_(static_cast<std::uint8_t>(number)) {}

  constexpr explicit operator int() const { return number_; }
  constexpr auto operator<=>(const Operation&) const = default;

  // The collectives stand before the messages in their table.
  static constexpr int collectives() {
    return static_cast<int>(
        std::ranges::count_if(kCollectives, [](const CollectiveRow& row) { return !row.is_message; }));
  }

 private:
  std::uint8_t number_;
};
inline constexpr int kOperationCount = Operation::collectives() + kExtraCount;

std::string_view to_string(Operation operation);
std::optional<Operation> operation_from_string(std::string_view name);
// Nothing if it is not a collective.
std::optional<Collective> collective_of(Operation operation);
// Null for messages.
const CollectiveRow* find_row(Operation operation);
bool is_reduction(Operation operation);
bool is_rooted(Operation operation);
bool is_message(Operation operation);  // pingpong, oneway, bidirectional
bool has_in_place(Operation operation);
bool has_order(Operation operation);  // reductions over all ranks

// isolated: every operation starts from rest, at a common time. stream: one operation after the other, without waiting
// in between. prepared: as isolated, but the start and the end of a call that was prepared before.
enum class Cadence : std::uint8_t { isolated, stream, prepared };
// hot: the same buffers every time. cold: their cache lines are flushed before every operation. rotate: different
// buffers in turn, which together are larger than the caches.
enum class CacheState : std::uint8_t { hot, cold, rotate };
std::string_view to_string(Cadence cadence);
std::string_view to_string(CacheState cache);

// The kind of memory of the buffers. cuda: each rank's GPU. Messages also have cpu_cuda and cuda_cpu: the first of the
// two ranks has the first kind, the second rank the second.
enum class Devices : std::uint8_t { cpu, cuda, cpu_cuda, cuda_cpu };
inline constexpr int kDevicesCount = 4;
std::string_view to_string(Devices devices);  // "cpu-cuda"
// The kind for a rank's buffers; `begins`: it is the first one of the two.
Device::Type device_of(Devices devices, bool begins);

// Everything that identifies a row. Rows of two runs are compared if this is equal.
struct CellSpec {
  Operation operation = Operation::allreduce;
  std::string backend = "auto";    // as asked for
  std::string algorithm = "auto";  // as asked for
  Devices device = Devices::cpu;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;  // reductions
  int root = 0;                 // rooted operations; kRotatingRoot: a different one each time
  std::size_t bytes = 0;        // nccl-tests' "size": the larger of a rank's two buffers; 0 for barrier
  int ranks = 2;                // of the whole run
  bool in_place = false;
  Cadence cadence = Cadence::isolated;
  CacheState cache = CacheState::hot;
  std::string groups = {};  // "mod:2", …: groups that work at the same time; empty: one group of all ranks
  std::optional<std::pair<int, int>> pair = {};  // messages: the two ranks; nothing: 0 and the last one
  col::Order order = col::Order::any;            // reductions; tree: each rank gives one contribution, and all know it
  bool operator==(const CellSpec&) const = default;
};
inline constexpr int kRotatingRoot = -1;
// Whether the channels of that backend move the memory of GPUs; not so if there is no such backend here.
bool moves_gpu_memory(const std::string& backend);
// Whether ranks need a GPU for it: for buffers, or for the backend.
bool needs_gpu(const CellSpec& spec);

// Elements of a block when the operation divides `bytes` into blocks of equal length, with at least one element each. 0
// for barrier.
std::size_t block_count(const CellSpec& spec, int group_size);
// The total size of such blocks.
std::size_t whole_bytes(const CellSpec& spec, int group_size);
// Blocks in each of a rank's two buffers; 0: the rank does not use the buffer.
struct Shape {
  int in = 1, out = 1;
};
Shape shape_of(Operation operation, int group_size, bool is_root);

// How many pairs of buffers a cell with CacheState::rotate uses in turn. Together they are larger than the processor's
// caches, and larger than `cache_bytes`, the cache of the GPU that they are on; but there are at most 4096 pairs.
std::size_t rotated_sets(const CellSpec& spec, int group_size, std::size_t cache_bytes = 0);

// Which group a rank is in, and its place there: "mod:2" rank % 2, "div:4" rank / 4, "pairs", "bisect" halves.
struct Placement {
  int group = 0, rank = 0, size = 1;
};
Placement placement_of(const std::string& groups, int rank, int size);
int group_size_of(const CellSpec& spec);  // of the largest group that spec.groups makes

// The partner of `rank` in messages, and which of the two begins; nothing for a rank without a partner. spec.groups:
// "pairs" 0 with 1, 2 with 3, …; "bisect" i with i + p/2; "bisect:D" i with i + D, where bit D of i is not set; empty:
// spec.pair, else rank 0 with the last rank.
struct Partner {
  int rank = 0;
  bool begins = false;
};
std::optional<Partner> partner_of(const CellSpec& spec, int rank, int size);

// "allreduce 32M float32 sum, ring over shm": for messages and for titles.
std::string text_of(const CellSpec& spec);
// "32M", "1000", "1.5K": powers of 1024, exact or with at most two decimals.
std::string size_text(std::size_t bytes);
// "1.5" for "1.50", "2" for "2.00".
std::string without_zeros(std::string number);
// A size: "32M", "8", "1K", "1.5M", and the same with B or iB behind it, all by powers of 1024. Nothing for other text.
std::optional<std::size_t> parse_size(std::string_view text);

}  // namespace col::colbench

// One thing to check: a property of the library, and the circumstances of the check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>
#include <col/plan.hpp>

#include "colcheck/engine/memory.hpp"
#include "colcheck/engine/primitive.hpp"

namespace col::colcheck {

// The kinds of memory of the buffers.
enum class Devices : std::uint8_t {
  cpu,    // the host
  cuda,   // each rank's GPU
  mixed,  // one or the other: device_of()
};

std::string_view to_string(Devices devices);

struct Case {
  std::string property = "exact";
  std::string backend = {};  // by name; empty: the property needs no backend
  int ranks = 1;
  Primitive primitive = Primitive::barrier;
  std::string algorithm = {};  // empty: the default
  DType dtype = DType::uint8;
  Operator op = Operator::sum;
  std::size_t count = 0;  // of the vector, or of a block; v-forms: of an average block
  int root = 0;
  bool in_place = false;
  bool asynchronous = false;
  int tag = 0;  // messages; see tag_of()
  Placement placement = Placement::margins;
  Devices devices = Devices::cpu;
  std::uint64_t variant = 0;  // its meaning depends on the property
  std::uint64_t seed = 0;     // of the inputs, the counts of v-forms, and other free choices
  bool operator==(const Case&) const = default;
};

// "allreduce of 17 float16, sum, in place, by ring": for readers.
std::string describe(const Case& c);
// "exact,backend=shm,np=5,coll=allreduce,algo=ring,…": parse_token(token_of(c)) == c. Members with default values are
// left out.
std::string token_of(const Case& c);
// Throws std::invalid_argument that says what is wrong with the token. Does not check that the property, backend or
// algorithm exists.
Case parse_token(std::string_view token);

// How a Case stands in JSON: as its token.
struct AsToken {
  template <class Builder>
  void write(Builder& out, const Case& c) const {
    out.add(token_of(c));
  }
  template <class Place>
  void read(const Place& place, Case& c) const {
    c = parse_token(place.text());
  }
};

// The two buffers of a call; in place, the input is both.
enum class Side : std::uint8_t { input, output };

// The kind of memory of a rank's buffer. Mixed: inputs of even ranks are in host memory, and those of odd ranks in GPU
// memory. Outputs are the same in one half of the cases, and the opposite in the other half.
Device::Type device_of(const Case& c, int rank, Side side);

// Whether a rank needs a GPU: for its buffers, or for the backend.
bool needs_gpu(Devices devices, std::string_view backend);

// The tag for case `number` of a group. There are few tags, so that the order within a tag matters. recv_any has its
// own tag, because it must not meet what a faster rank sends in the next case.
int tag_of(Primitive primitive, std::size_t number);

// Elements from rank `from` to rank `to` (this rank itself, if there is only one direction).
std::size_t block_count(const Case& c, int from, int to);

// The distance from a rank to the ranks that it sends to and receives from in send_recv and sendrecv: a rotation.
int shift_of(const Case& c, int size);
int destination_of(const Case& c, int rank, int size);
int source_of(const Case& c, int rank, int size);

// 0, 1, p-1, p, p+1, a prime that `seed` chooses.
inline constexpr int kCountClasses = 6;
std::size_t count_of(int count_class, int ranks, std::uint64_t seed);

// Whether the reference is the only right result, bit by bit. The backend for GPUs, NCCL, averages floats by
// multiplying each of them with 1/ranks, which is exact only for powers of two.
bool has_one_result(const Case& c);

// Registered algorithms that can serve the case on that many ranks.
std::vector<const Algorithm*> candidates(const Case& c, int ranks);

}  // namespace col::colcheck

// One rank's part in one event: the buffers, the call, and whether what came out is right.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "program.hpp"
#include "random.hpp"
#include "support/collectives.hpp"

namespace programs {

// Memory with a margin on either side that nobody may write to.
class Buffer {
 public:
  static constexpr std::size_t kMargin = 64;

  // At `place`, which has room for the content and two margins, or in memory of its own.
  explicit Buffer(const Bytes& content, std::byte* place = nullptr);

  std::byte* data() { return place_ + kMargin; }
  const std::byte* data() const { return place_ + kMargin; }
  col::TensorView view(col::DType dtype);
  bool margins_are_intact() const;

 private:
  Bytes own_;
  std::byte* place_;
  std::size_t bytes_;
};

// A group, and memory that its ranks share: for blocking calls, one at a time. There may be none.
struct Place {
  col::Group group = {};
  std::span<std::byte> shared = {};
};

class Part {
 public:
  // Calls what the event says, blocking or not. `choices` are this rank's own. The event outlives it.
  static std::unique_ptr<Part> begin(const Event& event, Place& place, Random& choices);

  // All have ended when the part has.
  std::vector<col::Work>& works() { return works_; }
  const Event& event() const { return event_; }
  // After the end: what is wrong, in words; empty when nothing is.
  std::string problem() const;

 private:
  // A buffer, and what it is to hold in the end. What a recv_any gets is known by where it came from.
  struct Expected {
    std::string name;
    std::unique_ptr<Buffer> buffer;
    Bytes content;
    bool from_any = false;
    int source = -1;       // of a blocking recv_any
    std::size_t work = 0;  // of one that is not
  };

  Part(const Event& event, Place& place, bool is_async)
      : event_(event), group_(place.group), shared_(place.shared), rank_(group_.rank()), is_async_(is_async) {}
  Buffer& add(std::string name, Bytes content);  // read only
  Buffer& add(std::string name, Bytes content, Bytes expected);
  void begin_collective();
  void call(col::ConstTensorView in, col::TensorView out, bool same);
  void begin_message();
  void begin_sendrecv();
  void begin_batch(Random& choices);
  void begin_recv_any();
  void gather_objects();
  void make_group();
  void send(Buffer& buffer, int destination, int tag);
  std::string problem_of_any(const Expected& expected, std::vector<std::size_t>& taken) const;
  col::Options options() const;

  const Event& event_;
  col::Group& group_;
  std::span<std::byte> shared_;  // what is left of it
  int rank_;
  bool is_async_;
  col::test::Lengths lengths_ = {};
  std::vector<Expected> expected_ = {};
  std::vector<col::Message> messages_ = {};
  std::vector<col::Work> works_ = {};
  std::string trouble_ = {};  // found at once
};

}  // namespace programs

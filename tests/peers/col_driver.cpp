// col, through its public interface. Started by colrun. With CONTEST_BUFFERS=shared the buffers are col's own.
#include <col/col.hpp>
#include <col/memory.hpp>

#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "contest.hpp"

namespace {

using contest::Cell;
using contest::Operation;

class ColContestant : public contest::Contestant {
 public:
  ColContestant() : world_(col::init()) {
    const char* buffers = std::getenv("CONTEST_BUFFERS");
    shared_ = buffers != nullptr && std::string_view(buffers) == "shared";
  }
  ~ColContestant() override {
    memory_.clear();
    col::finalize();
  }

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void run(const Cell& cell) override {
    const std::span<const float> in(cell.in, cell.in_count);
    const std::span<float> out(cell.out, cell.out_count);
    switch (cell.operation) {
      case Operation::barrier:
        return world_.barrier();
      case Operation::allreduce:
        return world_.allreduce(in, out);
      case Operation::allreduce_in_place:
        return world_.allreduce(out);
      case Operation::allreduce_bfloat16:
        return world_.allreduce(bfloat16_span(cell.in, cell.in_count), bfloat16_span(cell.out, cell.out_count));
      case Operation::broadcast:
        return world_.broadcast(out);
      case Operation::reduce:
        return world_.reduce(in, out);
      case Operation::allgather:
        return world_.allgather(in, out);
      case Operation::reduce_scatter:
        return world_.reduce_scatter(in, out);
      case Operation::gather:
        return world_.gather(in, out);
      case Operation::scatter:
        return world_.scatter(in, out);
      case Operation::alltoall:
        return world_.alltoall(in, out);
      case Operation::send:
        return cell.rank == 0 ? world_.send(in, 1) : world_.recv(out, 0);
      case Operation::round_trip:
        return round_trips(in, out);
      case Operation::split:
      case Operation::split_barrier:
        return split(cell);
      default:
        break;  // the frame composes it
    }
  }

  void start(const Cell& cell) override {
    started_ = world_.iallreduce(std::span<const float>(cell.in, cell.in_count), std::span(cell.out, cell.out_count));
  }
  void test() override { started_.test(); }
  void wait() override { started_.wait(); }

  void* allocate(std::size_t bytes) override {
    if (!shared_) return Contestant::allocate(bytes);
    memory_.emplace_back(col::alloc(bytes, world_), &col::free);
    return memory_.back().get();
  }

 private:
  static std::span<col::bfloat16> bfloat16_span(float* buffer, std::size_t count) {
    return {reinterpret_cast<col::bfloat16*>(buffer), count};
  }

  void round_trips(std::span<const float> in, std::span<float> out) {
    const int peer = 1 - world_.rank();
    for (int i = 0; i < contest::kRoundTrips; ++i) {
      if (peer == 1) world_.send(in, peer);
      world_.recv(out, peer);
      if (peer == 0) world_.send(in, peer);
    }
  }

  void split(const Cell& cell) {
    col::Group half = world_.split(cell.rank % 2);
    if (half.size() != contest::members_of_half(cell))
      throw std::runtime_error("a split gave a group of the wrong size");
    if (cell.operation == Operation::split_barrier) half.barrier();
    half.destroy();
  }

  col::Group world_;
  col::Work started_;
  bool shared_ = false;
  std::vector<std::unique_ptr<void, decltype(&col::free)>> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  return contest::measure(argc, argv, [] { return std::make_unique<ColContestant>(); });
}

// col, through its public interface. Started by colrun.
#include <col/col.hpp>

#include <span>

#include "contest.hpp"

namespace {

using contest::Cell;
using contest::Operation;

class ColContestant : public contest::Contestant {
 public:
  ColContestant() : world_(col::init()) {}
  ~ColContestant() override { col::finalize(); }

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void run(const Cell& cell) override {
    const std::span<const float> in(cell.in, cell.in_count);
    const std::span<float> out(cell.out, cell.out_count);
    switch (cell.operation) {
      case Operation::barrier:
        world_.barrier();
        break;
      case Operation::allreduce:
        world_.allreduce(in, out);
        break;
      case Operation::allreduce_in_place:
        world_.allreduce(out);
        break;
      case Operation::broadcast:
        world_.broadcast(out);
        break;
      case Operation::reduce:
        world_.reduce(in, out);
        break;
      case Operation::allgather:
        world_.allgather(in, out);
        break;
      case Operation::reduce_scatter:
        world_.reduce_scatter(in, out);
        break;
      case Operation::gather:
        world_.gather(in, out);
        break;
      case Operation::scatter:
        world_.scatter(in, out);
        break;
      case Operation::alltoall:
        world_.alltoall(in, out);
        break;
      case Operation::send:
        cell.rank == 0 ? world_.send(in, 1) : world_.recv(out, 0);
        break;
      case Operation::round_trip:
        round_trips(in, out);
        break;
    }
  }

 private:
  void round_trips(std::span<const float> in, std::span<float> out) {
    const int peer = 1 - world_.rank();
    for (int i = 0; i < contest::kRoundTrips; ++i) {
      if (peer == 1) world_.send(in, peer);
      world_.recv(out, peer);
      if (peer == 0) world_.send(in, peer);
    }
  }

  col::Group world_;
};

}  // namespace

int main(int argc, char** argv) {
  return contest::measure(argc, argv, [] { return std::make_unique<ColContestant>(); });
}

// Open MPI, MPICH or Intel MPI, whichever this was built with.
#include <mpi.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "contest.hpp"

namespace {

using contest::Cell;
using contest::Operation;

class MpiContestant : public contest::Contestant {
 public:
  MpiContestant() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    // A setting like any other: where all blocks are equal, both calls do the same, in some libraries not equally fast.
    const char* with_counts = std::getenv("CONTEST_REDUCE_SCATTER");
    with_counts_ = with_counts != nullptr && std::string_view(with_counts) == "counts";
  }
  ~MpiContestant() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  bool prepare(const Cell& cell) override {
    if (cell.operation == Operation::allreduce_bfloat16) return false;
    counts_.assign(std::size_t(size_), int(cell.block));
    return true;
  }

  void run(const Cell& cell) override {
    const int count = int(cell.count);
    const int block = int(cell.block);
    switch (cell.operation) {
      case Operation::barrier:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
      case Operation::allreduce:
        MPI_Allreduce(cell.in, cell.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::allreduce_in_place:
        MPI_Allreduce(MPI_IN_PLACE, cell.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::broadcast:
        MPI_Bcast(cell.out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
      case Operation::reduce:
        MPI_Reduce(cell.in, cell.out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
      case Operation::allgather:
        MPI_Allgather(cell.in, block, MPI_FLOAT, cell.out, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case Operation::reduce_scatter:
        if (with_counts_)
          MPI_Reduce_scatter(cell.in, cell.out, counts_.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else
          MPI_Reduce_scatter_block(cell.in, cell.out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::gather:
        MPI_Gather(cell.in, block, MPI_FLOAT, cell.out, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
      case Operation::scatter:
        MPI_Scatter(cell.in, block, MPI_FLOAT, cell.out, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
      case Operation::alltoall:
        MPI_Alltoall(cell.in, block, MPI_FLOAT, cell.out, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case Operation::send:
        return rank_ == 0 ? send(cell) : receive(cell);
      case Operation::round_trip:
        return round_trips(cell);
      case Operation::split:
      case Operation::split_barrier:
        return split(cell);
      default:
        break;  // prepare() has said no, or the frame composes it
    }
  }

  void start(const Cell& cell) override {
    MPI_Iallreduce(cell.in, cell.out, int(cell.count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &started_);
  }
  void test() override {
    int ended = 0;
    MPI_Test(&started_, &ended, MPI_STATUS_IGNORE);
  }
  void wait() override { MPI_Wait(&started_, MPI_STATUS_IGNORE); }

  // Any call that makes progress will do; nothing is ever sent with this tag.
  void progress() override {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kNeverSent, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }

 private:
  static constexpr int kTag = 1;
  static constexpr int kNeverSent = 2;

  void send(const Cell& cell) { MPI_Send(cell.in, int(cell.count), MPI_FLOAT, 1 - rank_, kTag, MPI_COMM_WORLD); }
  void receive(const Cell& cell) {
    MPI_Recv(cell.out, int(cell.count), MPI_FLOAT, 1 - rank_, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void round_trips(const Cell& cell) {
    for (int i = 0; i < contest::kRoundTrips; ++i) {
      if (rank_ == 0) send(cell);
      receive(cell);
      if (rank_ == 1) send(cell);
    }
  }

  void split(const Cell& cell) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, 0, &half);
    int members = 0;
    MPI_Comm_size(half, &members);
    if (members != contest::members_of_half(cell)) throw std::runtime_error("a split gave a group of the wrong size");
    if (cell.operation == Operation::split_barrier) MPI_Barrier(half);
    MPI_Comm_free(&half);
  }

  MPI_Request started_ = MPI_REQUEST_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool with_counts_ = false;
  std::vector<int> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  return contest::measure(argc, argv, [] { return std::make_unique<MpiContestant>(); });
}

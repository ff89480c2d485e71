// Gloo over TCP, as its own interface offers it, on the loopback interface or on CONTEST_INTERFACE. Started once for
// each rank, with CONTEST_RANK, CONTEST_RANKS and CONTEST_STORE (an empty folder).
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "contest.hpp"
#include "options.hpp"

namespace {

using contest::Cell;
using contest::Operation;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
using ReduceScatter = gloo::ReduceScatterHalvingDoubling<float>;

class GlooContestant : public contest::Contestant {
 public:
  GlooContestant() {
    gloo::transport::tcp::attr where;
    if (const char* interface = std::getenv("CONTEST_INTERFACE"))
      where.iface = interface;
    else
      where.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(std::stoi(contest::from_environment("CONTEST_RANK")),
                                                               std::stoi(contest::from_environment("CONTEST_RANKS")));
    context->setTimeout(std::chrono::seconds(60));
    gloo::rendezvous::FileStore store(contest::from_environment("CONTEST_STORE"));
    context->connectFullMesh(store, device);
    context_ = context;
    if (const char* name = std::getenv("CONTEST_GLOO_ALLREDUCE"); name != nullptr && std::string(name) == "bcube")
      allreduce_ = gloo::AllreduceOptions::Algorithm::BCUBE;
  }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  // Point to point, the buffers are made known once. For reduce_scatter this Gloo has an old class only, which works
  // in place: each run copies the input to it and the result from it.
  bool prepare(const Cell& cell) override {
    if (cell.operation == Operation::allreduce_bfloat16 || cell.operation > Operation::round_trip) return false;
    if (cell.in_count > 0) sent_ = context_->createUnboundBuffer(cell.in, cell.in_count * sizeof(float));
    if (cell.out_count > 0) received_ = context_->createUnboundBuffer(cell.out, cell.out_count * sizeof(float));
    if (cell.operation == Operation::reduce_scatter) {
      scratch_.resize(cell.count);
      const std::vector<int> counts(std::size_t(cell.size), int(cell.block));
      reduce_scatter_ =
          std::make_unique<ReduceScatter>(context_, std::vector<float*>{scratch_.data()}, int(cell.count), counts);
    }
    return true;
  }

  void finish(const Cell&) override {
    sent_.reset();
    received_.reset();
    reduce_scatter_.reset();
  }

  void run(const Cell& cell) override {
    switch (cell.operation) {
      case Operation::barrier:
        return barrier();
      case Operation::allreduce:
      case Operation::allreduce_in_place:
        return allreduce(cell);
      case Operation::broadcast:
        return broadcast(cell);
      case Operation::reduce:
        return reduce(cell);
      case Operation::allgather:
        return allgather(cell);
      case Operation::reduce_scatter:
        std::copy_n(cell.in, cell.count, scratch_.data());
        reduce_scatter_->run();
        std::copy_n(scratch_.data(), cell.block, cell.out);
        break;
      case Operation::gather:
        return gather(cell);
      case Operation::scatter:
        return scatter(cell);
      case Operation::alltoall:
        return alltoall(cell);
      case Operation::send:
        return cell.rank == 0 ? send() : receive();
      case Operation::round_trip:
        for (int i = 0; i < contest::kRoundTrips; ++i) {
          if (cell.rank == 0) send();
          receive();
          if (cell.rank == 1) send();
        }
        break;
      default:
        break;  // prepare() has said no
    }
  }

 private:
  using Sum = void (*)(void*, const void*, const void*, std::size_t);
  static constexpr Sum kSum = &gloo::sum<float>;
  static constexpr std::uint64_t kSlot = 1;

  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void allreduce(const Cell& cell) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(allreduce_);
    if (cell.operation == Operation::allreduce) options.setInput(cell.in, cell.count);
    options.setOutput(cell.out, cell.count);
    options.setReduceFunction(kSum);
    gloo::allreduce(options);
  }
  void broadcast(const Cell& cell) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(cell.out, cell.count);
    options.setRoot(0);
    gloo::broadcast(options);
  }
  // Gloo uses the output of every rank, the root's or not.
  void reduce(const Cell& cell) {
    gloo::ReduceOptions options(context_);
    options.setInput(cell.in, cell.count);
    options.setOutput(cell.out, cell.count);
    options.setRoot(0);
    options.setReduceFunction(kSum);
    gloo::reduce(options);
  }
  void allgather(const Cell& cell) {
    gloo::AllgatherOptions options(context_);
    options.setInput(cell.in, cell.block);
    options.setOutput(cell.out, cell.count);
    gloo::allgather(options);
  }
  void gather(const Cell& cell) {
    gloo::GatherOptions options(context_);
    options.setInput(cell.in, cell.block);
    if (cell.rank == 0) options.setOutput(cell.out, cell.count);
    options.setRoot(0);
    gloo::gather(options);
  }
  void scatter(const Cell& cell) {
    gloo::ScatterOptions options(context_);
    if (cell.rank == 0) {
      std::vector<float*> blocks;
      for (int rank = 0; rank < cell.size; ++rank) blocks.push_back(cell.in + std::size_t(rank) * cell.block);
      options.setInputs(blocks, cell.block);
    }
    options.setOutput(cell.out, cell.block);
    options.setRoot(0);
    gloo::scatter(options);
  }
  void alltoall(const Cell& cell) {
    gloo::AlltoallOptions options(context_);
    options.setInput(cell.in, cell.count);
    options.setOutput(cell.out, cell.count);
    gloo::alltoall(options);
  }
  void send() {
    sent_->send(1 - context_->rank, kSlot);
    sent_->waitSend();
  }
  void receive() {
    received_->recv(1 - context_->rank, kSlot);
    received_->waitRecv();
  }

  std::shared_ptr<gloo::Context> context_;  // shared with everything of Gloo's that works in it
  gloo::AllreduceOptions::Algorithm allreduce_ = gloo::AllreduceOptions::Algorithm::UNSPECIFIED;
  Buffer sent_;
  Buffer received_;
  std::vector<float> scratch_;
  std::unique_ptr<ReduceScatter> reduce_scatter_;
};

}  // namespace

int main(int argc, char** argv) {
  return contest::measure(argc, argv, [] { return std::make_unique<GlooContestant>(); });
}

// A walk through the calls besides allreduce. Run it with colrun -n 4, or any other even number of ranks.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

struct Settings {
  int epochs = 0;
  double rate = 0;
};

int main() {
  col::Group world = col::init();
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<float> gradients(1000, 1.0F), sums(1000), all(100 * ranks, 2.0F), mine(100);
  Settings settings = world.rank() == 0 ? Settings{15, 0.1} : Settings{};

  // [readme]
  col::Work work = world.iallreduce(gradients, sums);  // compute meanwhile, then
  work.wait();
  world.reduce_scatter(all, mine, {.op = col::ReduceOp::avg});
  world.broadcast_object(settings);                 // structs, strings, vectors
  col::Group half = world.split(world.rank() % 2);  // groups from groups
  half.allreduce(gradients, {.algorithm = "bde"});
  std::vector<float, col::Allocator<float>> shared(1 << 20, col::Allocator<float>(world));
  world.allreduce(shared);  // memory that the ranks share: nothing is copied on the way
  const std::string why = world.explain(col::Collective::allreduce, 32 << 20);  // which algorithm, and why
  // [/readme]

  // Rank 0 hears from the others in whatever order they come.
  int greeted = 0;
  if (world.rank() == 0) {
    for (std::size_t i = 1; i < ranks; ++i) {
      int number = 0;
      const int from = world.recv_any(std::span(&number, 1), {.tag = 7});
      if (number == from * from) ++greeted;
    }
    std::printf("%d ranks over %.*s: sum %g, average %g, %d epochs, halves of %d, %d greetings\n%s\n", world.size(),
                static_cast<int>(world.backend().size()), world.backend().data(), sums[0], mine[0], settings.epochs,
                half.size(), greeted, why.c_str());
  } else {
    const int number = world.rank() * world.rank();
    world.send(std::span(&number, 1), 0, {.tag = 7});
  }
  col::finalize();
}

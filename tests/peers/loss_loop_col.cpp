// Loses a rank of a job under colrun --keep-going, and renews the group; the times go to the file that is its argument.
#include <exception>

#include <col/col.hpp>

#include "loss_loop.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  try {
    col::Group world = col::init();
    const auto sum = [&](const std::vector<float>& in, std::vector<float>& out) {
      try {
        world.allreduce(in, out);
        return true;
      } catch (const col::Error&) {
        return false;
      }
    };
    return contest::lose_the_last(argv[1], world.rank(), world.size(), sum, [&] { world = world.renew(); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loss_loop: %s\n", error.what());
    return 1;
  }
}

#include <col/col.hpp>

#include "call_loop.hpp"

int main(int argc, char** argv) {
  col::Group world = col::init();
  const int code = contest::loop_calls(
      argc, argv, world.rank(), world.size(), [&](const auto& in, auto& out) { world.allreduce(in, out); },
      [&](int value) {
        world.broadcast(value);
        return value;
      });
  col::finalize();
  return code;
}

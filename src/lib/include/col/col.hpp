// col: collective communication for processes.
//
//   #include <col/col.hpp>
//
//   int main() {
//     col::Group world = col::init();
//     std::vector<float> gradients(1000, float(world.rank()));
//     world.allreduce(gradients);              // every rank now holds the sum
//     col::finalize();
//   }
//
//   colrun -n 8 ./my_trainer
#pragma once

#include <col/error.hpp>   // IWYU pragma: export
#include <col/group.hpp>   // IWYU pragma: export
#include <col/memory.hpp>  // IWYU pragma: export
#include <col/types.hpp>   // IWYU pragma: export

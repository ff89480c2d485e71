// A module of another build of col.
#include <col/channel.hpp>

#include "backend/module.hpp"

extern "C" COL_EXPORT const col::backend::Module* col_backend_entry() {
  static constexpr col::backend::Module kModule{"0.0.0 another build", nullptr};
  return &kModule;
}

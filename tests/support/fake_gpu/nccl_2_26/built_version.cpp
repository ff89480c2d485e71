#include "support/fake_gpu/nccl/library.hpp"

const int fake_nccl::kBuiltVersion = 22602;

// Every built-in algorithm, by collective. One file each; registry.cpp lists them.
#pragma once

#include <col/plan.hpp>

namespace col::plan {

namespace allreduce {
extern const Algorithm mst, bde, bde_half, ring, ring_pipelined, rabenseifner, direct, one_shot, double_tree,
    ps_central, ps_sharded;
}
namespace broadcast {
extern const Algorithm linear, mst, knomial, chain_pipelined, scatter_allgather;
}
namespace reduce {
extern const Algorithm linear, mst, rabenseifner, chain_pipelined;
}
namespace allgather {
extern const Algorithm ring, doubling, bruck, direct, neighbor;
}
namespace reduce_scatter {
extern const Algorithm ring, halving, pairwise, direct;
}
namespace gather {
extern const Algorithm linear, binomial;
}
namespace scatter {
extern const Algorithm linear, binomial;
}
namespace alltoall {
extern const Algorithm linear, pairwise, bruck;
}
namespace barrier {
extern const Algorithm dissemination, tree, central;
}
namespace scan {
extern const Algorithm linear, doubling;
}
namespace exscan {
extern const Algorithm linear, doubling;
}

}  // namespace col::plan

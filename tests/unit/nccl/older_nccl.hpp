// nccl.h as it was in 2.19: what came later has another name here, so what uses it does not compile.
#pragma once

#define ncclAlltoAll later_alltoall
#define ncclCommRevoke later_revoke
#define ncclCommShrink later_shrink
#define ncclCommWindowDeregister later_deregister
#define ncclCommWindowRegister later_register
#define ncclGather later_gather
#define ncclScatter later_scatter
#define ncclWindow_t later_window
#define commName later_name
#define trafficClass later_class
#include <nccl.h>
#undef ncclAlltoAll
#undef ncclCommRevoke
#undef ncclCommShrink
#undef ncclCommWindowDeregister
#undef ncclCommWindowRegister
#undef ncclGather
#undef ncclScatter
#undef ncclWindow_t
#undef commName
#undef trafficClass
#undef NCCL_WIN_DEFAULT
#undef NCCL_WIN_COLL_SYMMETRIC
#undef NCCL_SHRINK_DEFAULT
#undef NCCL_SHRINK_ABORT
#undef NCCL_REVOKE_DEFAULT

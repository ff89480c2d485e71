// What backends in libraries of their own use of libcol's inside, beside <col/...>: few functions, of the same build. A
// module of another build is refused (backend/build_id.py).
#pragma once

#define COL_MODULE_EXPORT __attribute__((visibility("default")))

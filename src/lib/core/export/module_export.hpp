// The part of libcol's inside that backends in libraries of their own use, beside <col/...>: few functions, of the same
// build. A module of another build is refused (backend/build_id.py).
#pragma once

#define COL_MODULE_EXPORT __attribute__((visibility("default")))

// For a few small variables of a thread that each call reads.
#pragma once

// Read without a call. They take their place from what the C library keeps for libraries that are loaded later, which
// is small (some 500 bytes in all, for all libraries): for words only.
#define COL_FAST_TLS [[gnu::tls_model("initial-exec")]]

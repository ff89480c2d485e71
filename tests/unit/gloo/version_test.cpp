// The versions of Gloo that backend/gloo/transport.cpp is written for: it overrides what Gloo does not promise to keep.
#include <algorithm>
#include <array>

#include <gloo/config.h>

#include "support/catch.hpp"

TEST_CASE("gloo: the transport knows the internals of this version", "[gloo]") {
  constexpr std::array kKnown = {500};  // 0.5.0, as all its snapshots call themselves; Debian's is that of 2022-05-18
  INFO("Gloo " << GLOO_VERSION_MAJOR << "." << GLOO_VERSION_MINOR << "." << GLOO_VERSION_PATCH
               << " is new here, and backend/gloo/transport.cpp overrides protected functions of its TCP transport. "
                  "See what has changed in gloo/transport/tcp, run the tests [gloo], and then add the version to this "
                  "list.");
  CHECK(std::find(kKnown.begin(), kKnown.end(), GLOO_VERSION) != kKnown.end());
}

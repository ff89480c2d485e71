// Catch2, whichever of 2.13 (Debian 12) and 3 (newer distributions) is installed.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;  // where Catch2 3 has it
}
#endif

// What nearly every test includes, compiled once per test program.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"

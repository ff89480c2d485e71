// The results as a page for a browser.
#pragma once

#include <string>

#include "colcheck/results.hpp"

namespace col::colcheck {

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts. Shows at most 500
// failures. Pure.
std::string html_report(const Results& results);

}  // namespace col::colcheck

// The results as JUnit XML, as CI servers read it: a suite per property, a test case per case.
#pragma once

#include <string>

#include "colcheck/results.hpp"

namespace col::colcheck {

// A well-formed XML 1.0 document in UTF-8, whatever bytes the results contain. A run that ended early has an error in a
// separate suite. Pure.
std::string junit_report(const Results& results);

}  // namespace col::colcheck

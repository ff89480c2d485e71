// How commands print their results.
#pragma once

#include <string>

#include "common/screen.hpp"
#include "common/style.hpp"
#include "common/write_file.hpp"

namespace col::colbench {

// The reader of stdout is gone, or stdout is full.
class OutputClosed : public tools::WriteError {
 public:
  using tools::WriteError::WriteError;
};

// Prints all of `text` at once. Throws OutputClosed if stdout does not take it.
void print(const std::string& text);
// Prints as much as stderr takes.
void print_error(const std::string& text);

inline tools::Style style_of(const tools::Screen& screen) {
  return {.utf8 = screen.utf8, .colour = screen.colour};
}

}  // namespace col::colbench

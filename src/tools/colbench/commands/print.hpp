// How commands write what they have found.
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

// All of `text`, at once. Throws OutputClosed when stdout does not take it.
void print(const std::string& text);
// As far as stderr takes it.
void print_error(const std::string& text);

inline tools::Style style_of(const tools::Screen& screen) {
  return {.utf8 = screen.utf8, .colour = screen.colour};
}

}  // namespace col::colbench

// Text for reports: makes foreign text harmless, and formats numbers and names. All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/style.hpp"

namespace col::tools {

// `text` as valid UTF-8 without control characters except tab and newline. Every other byte becomes \x1b. With `ascii`,
// this holds for every byte that is not ASCII too.
std::string clean(std::string_view text, bool ascii = false);
// The same on one line: each run of spaces, tabs and newlines becomes one space, and none is left at the ends.
std::string one_line(std::string_view text, bool ascii = false);

// The number of terminal columns of clean text: one for each character.
std::size_t columns_of(std::string_view text);
// The first `columns` columns of it.
std::string_view cut(std::string_view text, std::size_t columns);
// As much of it as so many columns have room for, with an ellipsis where some of it is missing.
std::string fitted(std::string_view text, std::size_t columns, Style style);
// Its lines, without their ends.
std::vector<std::string> lines_of(std::string_view text);

// Cuts `text` after the first `separator`, and returns the part before it.
std::string_view take(std::string_view& text, char separator);
// Without white space at both ends.
std::string_view trimmed(std::string_view text);

// The words of `text` in lines of at most `columns` columns, as far as words allow. The first line stands behind `used`
// columns of another text, the others begin with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t used = 0, std::size_t indent = 0);
// Clean text whose paragraphs are wrapped. A line that begins with a space or "Usage: " stands alone. If it is too
// long, it goes on under what follows "Usage: ", or its first gap of several spaces.
std::string reflowed(std::string_view text, std::size_t columns);

// "2,412".
std::string grouped(std::size_t number);
// "1 case", "2,412 cases".
std::string counted(std::size_t number, std::string_view noun);
// "0-3, 8" of ascending numbers.
std::string ranges_text(std::span<const int> numbers, std::string_view separator = ", ");
// "14.2 s", "10 min 5 s".
std::string in_words(double seconds);
// One word for a shell: 'exact,backend=shm'.
std::string shell_quoted(std::string_view word);
// The words as one line for a shell; quoted are only those that need it.
std::string shell_line(const std::vector<std::string>& words);
// For the text and the attributes of XML and HTML: clean, with &, <, >, quotes, tabs and newlines as entities.
std::string markup(std::string_view text);

}  // namespace col::tools

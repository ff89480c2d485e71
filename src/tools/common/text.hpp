// Text for reports: what came from elsewhere made harmless, numbers and names as readers expect them. All of it pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace col::tools {

// `text` as valid UTF-8 without control characters but tab and newline: every other byte as \x1b. With `ascii`, also
// every byte that is not ASCII.
std::string clean(std::string_view text, bool ascii = false);
// The same on one line: each stretch of spaces, tabs and newlines becomes a space, none is left at the ends.
std::string one_line(std::string_view text, bool ascii = false);

// Terminal columns that clean text takes, one for each character.
std::size_t columns_of(std::string_view text);
// The first `columns` of it.
std::string_view cut(std::string_view text, std::size_t columns);

// "2,412".
std::string grouped(std::size_t number);
// "1 case", "2,412 cases".
std::string counted(std::size_t number, std::string_view noun);
// "14.2 s", "10 min 5 s".
std::string in_words(double seconds);
// One word for a shell: 'exact,backend=shm'.
std::string shell_quoted(std::string_view word);
// For the text and the attributes of XML and HTML: clean, with &, <, >, quotes, tabs and newlines as entities.
std::string markup(std::string_view text);

}  // namespace col::tools

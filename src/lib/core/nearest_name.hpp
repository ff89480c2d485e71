// For "did you mean": finds the known name that is nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace col::core {

// By edit distance. Empty if no candidate is near: if more than a third of the word differs. The first one of several
// equally near candidates. Looks at the first 64 characters at most.
std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates);

// "; did you mean 'ring'?", or nothing: the end of a message.
std::string did_you_mean(std::string_view misspelt, std::span<const std::string_view> candidates);

}  // namespace col::core

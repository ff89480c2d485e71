// For "did you mean": the known name that a misspelt one was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace col::core {

// By edit distance; empty when no candidate is near (more than a third of the word differs). The first of equally near
// ones. Looks at no more than the first 64 characters.
std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates);

// "; did you mean 'ring'?", or nothing: to be put behind a message.
std::string did_you_mean(std::string_view misspelt, std::span<const std::string_view> candidates);

}  // namespace col::core

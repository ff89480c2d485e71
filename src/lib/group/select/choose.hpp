// col::choose() for those who may do without the reason.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <col/select.hpp>

namespace col::group {

// Whether a choice is to say why it was made. To put it into words costs more than to choose.
enum class Reasons { told, untold };

std::optional<Choice> choose(const SelectionTable& table, const SelectionQuery& query,
                             const std::function<std::optional<std::string>(const AlgorithmSpec&)>& why_not,
                             std::string* refused, Reasons reasons);

}  // namespace col::group

#include "colbench/report/grid.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"

namespace col::colbench {

Grid::Grid(std::vector<Column> columns, const std::vector<Row>& rows, std::vector<std::string> marks, bool ascii)
    : columns_(std::move(columns)), marks_(std::move(marks)) {
  for (const Column& column : columns_) {
    std::vector<std::string>& texts = texts_.emplace_back();
    for (const Row& row : rows) texts.push_back(tools::clean(column.in_table(row), ascii));
  }
}

std::vector<std::string_view> Grid::fit(std::size_t columns) {
  std::vector<std::string_view> gone;
  if (width() > columns) gap_ = 1;
  if (width() > columns) join_units();
  while (width() > columns) {
    const auto least = std::min_element(columns_.begin(), columns_.end(),
                                        [](const Column& a, const Column& b) { return a.rank < b.rank; });
    if (least == columns_.end() || least->rank >= kNeverGoes) break;
    gone.push_back(least->table.name);
    texts_.erase(texts_.begin() + (least - columns_.begin()));
    columns_.erase(least);
  }
  return gone;
}

std::string Grid::head() const {
  return join([this](std::size_t i) { return columns_[i].table.name; });
}

std::string Grid::line(std::size_t row) const {
  return join([this, row](std::size_t i) -> std::string_view { return texts_[i][row]; });
}

std::size_t Grid::width() const {
  std::size_t mark = 0;
  for (const std::string& text : marks_) mark = std::max(mark, tools::columns_of(text));
  std::size_t sum = mark + (mark > 0 ? gap_ : 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) sum += width_of(i) + (i > 0 ? gap_ : 0);
  return sum;
}

std::size_t Grid::width_of(std::size_t column) const {
  std::size_t width = tools::columns_of(columns_[column].table.name);
  for (const std::string& text : texts_[column]) width = std::max(width, tools::columns_of(text));
  return width;
}

std::string Grid::join(const std::function<std::string_view(std::size_t)>& text) const {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) line.append(gap_, ' ');
    const std::size_t missing = width_of(i) - tools::columns_of(text(i));
    const bool left = columns_[i].left_aligned();
    if (!left) line.append(missing, ' ');
    line += text(i);
    if (left) line.append(missing, ' ');
  }
  return line;
}

void Grid::join_units() {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].facet) continue;
    for (std::string& text : texts_[i]) std::erase(text, ' ');
  }
}

}  // namespace col::colbench

// Rows and columns of text, made to fit.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/report/columns.hpp"

namespace col::colbench {

// The cells of a table as texts; the mark of a row, which may be empty, stands after its last column. All of it pure.
class Grid {
 public:
  Grid(std::vector<Column> columns, const std::vector<Row>& rows, std::vector<std::string> marks, bool ascii);

  // Makes lines at most `columns` wide: a narrower gap, then no space before units, then fewer columns. What names a
  // row stays, even when that is too wide. Returns the names of the columns that went.
  std::vector<std::string_view> fit(std::size_t columns);

  const std::vector<Column>& columns() const { return columns_; }
  std::string head() const;
  std::string line(std::size_t row) const;  // without the mark
  std::size_t width() const;
  std::size_t gap() const { return gap_; }

 private:
  std::size_t width_of(std::size_t column) const;
  std::string join(const std::function<std::string_view(std::size_t)>& text) const;
  void join_units();

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> texts_;  // by column, then by row
  std::vector<std::string> marks_;
  std::size_t gap_ = 2;
};

}  // namespace col::colbench

// What the handles of <col/col.h> hold.
#pragma once

#include <memory>
#include <string>

#include <col/col.h>
#include <col/group.hpp>
#include <col/store.hpp>

struct col_error {
  col::Error value;
};

struct col_op {
  col::Op value;
};

struct col_store {
  std::shared_ptr<col::Store> value;
};

struct col_context {
  std::shared_ptr<col::Context> value;  // shared with the handles of its groups, so that those may be freed later
};

struct col_group {
  col::Group value;
  std::shared_ptr<col::Context> context;  // null: the one of the process
  std::string name, backend;
};

struct col_work {
  col::Work value;
};

struct col_prepared {
  col::PreparedCall value;
};

// Programs see libcol.so alone, with hidden symbols: what it throws must still be caught by type, and what a program
// implements must still be called.
#include <col/channel.hpp>
#include <col/col.hpp>

#include "support/outcomes.hpp"

namespace {

class UselessBackend final : public col::BackendFactory {
 public:
  std::string_view name() const override { return "useless"; }
  std::optional<std::string> unavailable_reason() const override { return "it is only here for a test"; }
  std::unique_ptr<col::Channel> connect(const col::ConnectRequest&, col::WaitContext&) override {
    throw col::Error(col::ErrorCode::internal, "an unavailable backend was asked to connect");
  }
  std::string describe(const col::ConnectRequest&) const override { return "nothing"; }
};

}  // namespace

TEST_CASE("an error thrown inside libcol.so is caught by its type outside", "[api]") {
  col::test::expect_error(col::ErrorCode::invalid_argument, "", [] { col::dtype_from_string("float7"); });
  CHECK_THROWS_AS(col::dtype_from_string("float7"), std::runtime_error);
}

TEST_CASE("a program's own backend is found by name, and says why it cannot be used", "[api]") {
  col::register_backend(std::make_unique<UselessBackend>());
  CHECK_THROWS_AS(col::register_backend(std::make_unique<UselessBackend>()), col::Error);
  col::ContextSpec spec;
  spec.store = col::make_memory_store();
  col::Context context(spec);
  col::test::expect_error(col::ErrorCode::unavailable, "only here for a test",
                          [&] { context.init_group({.world_size = 2, .backend_name = "useless"}); });
  CHECK_FALSE(context.is_initialized("default"));
}

TEST_CASE("a program can read its place in the job by itself", "[api]") {
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.rank == 0);
  CHECK(spec.world_size == 1);
}

TEST_CASE("the library knows its version", "[api]") {
  CHECK(col::version() == "0.1.0");
}

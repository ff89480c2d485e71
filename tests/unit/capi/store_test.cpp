// A TCP store whose token the program passes.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <col/col.h>
#include <col/store.hpp>

#include "support/catch.hpp"

namespace col::capi {
namespace {

col_store_spec with_token(const char* url, const char* token) {
  col_store_spec spec = {};
  spec.size = sizeof spec;
  spec.url = url;
  spec.token = token;
  return spec;
}

std::string refusal_of(const char* url) {
  const col_store_spec spec = with_token(url, "secret");
  col_store* store = nullptr;
  col_error* error = nullptr;
  const std::int32_t code = col_store_open(&spec, &store, &error);
  std::string text = col_error_text(error);
  CHECK(code == COL_ERROR_INVALID_ARGUMENT);
  CHECK(store == nullptr);
  col_error_free(error);
  return text;
}

// Joins the group of all, and returns the code and the text of the error.
std::string join(const std::string& url, const char* token, const char* job, int rank, int size) {
  col_store_spec opened = with_token(url.c_str(), token);
  opened.job_id = job;
  opened.timeout_ns = 5'000'000'000;
  col_store* store = nullptr;
  col_context* context = nullptr;
  col_group* group = nullptr;
  col_error* error = nullptr;
  if (col_store_open(&opened, &store, &error) == COL_OK) {
    col_context_spec spec = {};
    spec.size = sizeof spec;
    spec.store = store;
    spec.rank = rank;
    spec.world_size = size;
    spec.job_id = "j";
    spec.timeout_ns = 20'000'000'000;
    if (col_context_create(&spec, &context, &error) == COL_OK) col_group_init(context, nullptr, &group, &error);
  }
  std::string text = col_error_text(error);
  if (text.empty()) text = fmt::format("{} of {}", col_group_rank(group), col_group_size(group));
  col_error_free(error);
  col_group_free(group);
  col_context_free(context);
  col_store_free(store);
  return text;
}

}  // namespace

TEST_CASE("capi: ranks meet in a TCP store with a token that they are given", "[capi]") {
  const StoreServer server({.host = "127.0.0.1", .token = "secret", .job = store_job("j", 0)});
  const std::string url = fmt::format("tcp://127.0.0.1:{}", server.port());
  std::vector<std::string> said(2);
  {
    const std::jthread other([&] { said[1] = join(url, "secret", "j", 1, 2); });
    said[0] = join(url, "secret", "j", 0, 2);
  }
  CHECK(said[0] == "0 of 2");
  CHECK(said[1] == "1 of 2");
  CHECK(join(url, "guess", "j", 0, 2).find("mismatch") == 0);
  CHECK(join(url, "secret", "another", 0, 2).find("mismatch") == 0);
}

TEST_CASE("capi: a URL that is none is refused", "[capi]") {
  for (const char* url : {"file://tmp", "tcp://", "tcp://host", "tcp://host:", "tcp://:1", "tcp://host:0",
                          "tcp://host:65536", "tcp://host:1x", "tcp://::1:4711", "tcp://[]:4711"}) {
    INFO(url);
    CHECK(refusal_of(url).find(fmt::format("store URL '{}' needs", url)) != std::string::npos);
  }
  const col_store_spec in_brackets = with_token("tcp://[::1]:4711", "secret");
  col_store* store = nullptr;
  CHECK(col_store_open(&in_brackets, &store, nullptr) == COL_OK);  // it connects when it is used
  col_store_free(store);
}

}  // namespace col::capi

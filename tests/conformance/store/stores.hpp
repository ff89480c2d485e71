// Every store, as a list of types for TEMPLATE_LIST_TEST_CASE: each makes a fresh, empty one.
#pragma once

#include <chrono>
#include <memory>
#include <tuple>

#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/outcomes.hpp"
#include "support/temp_dir.hpp"

namespace col::test {

struct InMemory {
  std::shared_ptr<Store> store = make_memory_store();
};

struct InFiles {
  TempDir directory;
  std::shared_ptr<Store> store = make_file_store(directory / "store");
};

// In a server, in this process.
struct OverTcp {
  StoreServer server{{.host = "127.0.0.1", .token = "a token"}};
  std::shared_ptr<Store> store = make_tcp_store("127.0.0.1", server.port(), "a token", std::chrono::seconds(20));
};

struct ByUrl {
  TempDir directory;
  std::shared_ptr<Store> store = open_store("file://" + directory.path());
};

// A scope of Base, beside keys that must not be seen in it.
template <class Base>
struct Scoped {
  Base base;
  std::shared_ptr<Store> store = make_prefix_store(base.store, "job/1");

  Scoped() {
    base.store->set("neighbour", "of the scope");
    make_prefix_store(base.store, "job/2")->set("neighbour", "in another scope");
  }
};

// A scope within a scope of Base, beside keys of the outer one.
template <class Base>
struct Nested {
  Scoped<Base> outer;
  std::shared_ptr<Store> store = make_prefix_store(outer.store, "group 0");

  Nested() { outer.store->set("neighbour", "in the outer scope"); }
};

using Stores = std::tuple<InMemory, InFiles, OverTcp, ByUrl, Scoped<InMemory>, Scoped<InFiles>, Scoped<OverTcp>,
                          Nested<InMemory>, Nested<InFiles>>;

// For ranks as threads that then share memory. That a file is read after it was written orders nothing for
// ThreadSanitizer: it would take what the two threads did before and after for a race.
#ifdef __SANITIZE_THREAD__
using ThreadStores = std::tuple<InMemory, OverTcp, Scoped<InMemory>, Nested<InMemory>>;
#else
using ThreadStores = Stores;
#endif

}  // namespace col::test

#include "store_server.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <col/store.hpp>

#include "gil.hpp"

namespace col::python {
namespace {

class ServerObject {
 public:
  ServerObject(const std::string& host, int port, std::optional<std::string> token)
      : token_(token ? *std::move(token) : make_store_token()) {
    server_ = without_gil(
        [&] { return std::make_unique<StoreServer>(StoreServerSpec{.host = host, .port = port, .token = token_}); });
  }
  ~ServerObject() {
    if (server_) stop();
  }
  ServerObject(ServerObject&&) = default;
  ServerObject& operator=(ServerObject&&) = delete;

  std::string url() const { return server_->url(); }
  const std::string& token() const { return token_; }
  void stop() {
    without_gil([this] { server_->stop(); });
  }

 private:
  std::string token_;
  std::unique_ptr<StoreServer> server_;
};

}  // namespace

void bind_store_server(nb::module_& module) {
  nb::class_<ServerObject>(
      module, "StoreServer", nb::is_weak_referenceable(),
      "A store in the memory of this process, where ranks meet: init(store=server.url, "
      "token=server.token, …). It listens at the address that host is, on all if it is empty, 0.0.0.0 or "
      "::, on a free port unless one is given. It proves the token, which is never sent; without one, it makes one.")
      .def(nb::init<const std::string&, int, std::optional<std::string>>(), nb::arg("host") = "127.0.0.1",
           nb::arg("port") = 0, nb::arg("token") = nb::none())
      .def_prop_ro("url", &ServerObject::url)
      .def_prop_ro("token", &ServerObject::token)
      .def("stop", &ServerObject::stop, "Drops all clients, and forgets all keys.");
}

}  // namespace col::python

// The network interface that the connections of a group use.
#pragma once

#include <string_view>

#include "net/interfaces.hpp"

namespace col::gloo_backend {

using net::Interface;

// The first of net::choose_interfaces().
inline Interface choose_interface(bool same_host, std::string_view wanted) {
  return net::choose_interfaces("gloo", same_host, wanted).front();
}

}  // namespace col::gloo_backend

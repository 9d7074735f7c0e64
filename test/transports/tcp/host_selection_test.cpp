// KOLO_TCP_HOST as a selection of this host's addresses.
#include "transports/tcp/host_selection.h"

#include <string>
#include <vector>

#include "test/support/catch.h"

namespace kolo::tcp {
namespace {

using Hosts = std::vector<std::string>;

const std::vector<posix::InterfaceAddress> kInterfaces = {{"eth0", "10.9.0.1", false},
                                                          {"eth1", "10.9.128.7", false},
                                                          {"eth0", "fd00:9::1", false},
                                                          {"docker0", "172.17.0.1", false},
                                                          {"lo", "127.0.0.1", true}};

}  // namespace

TEST_CASE("addresses are selected by interface, network and exclusion") {
  const auto selected = [](const char* text) { return select_hosts(text, kInterfaces); };
  CHECK(selected("eth0") == Hosts{"10.9.0.1", "fd00:9::1"});
  CHECK(selected("eth") == Hosts{"10.9.0.1", "10.9.128.7", "fd00:9::1"});
  CHECK(selected("=eth").empty());
  CHECK(selected("=eth1,lo") == Hosts{"10.9.128.7", "127.0.0.1"});
  CHECK(selected("10.9.0.0/17") == Hosts{"10.9.0.1"});
  CHECK(selected("10.9.0.0/16,fd00::/8") == Hosts{"10.9.0.1", "10.9.128.7", "fd00:9::1"});
  CHECK(selected("0.0.0.0/0") == Hosts{"10.9.0.1", "10.9.128.7", "172.17.0.1", "127.0.0.1"});
  CHECK(selected("^docker,lo,10.9.128.0/17") == Hosts{"10.9.0.1", "fd00:9::1"});
  CHECK(selected("172.17.0.1,eth1") == Hosts{"10.9.128.7", "172.17.0.1"});
}

TEST_CASE("an unreadable network selects nothing") {
  for (const char* text : {"10.9.0.0/33", "10.9.0.0/", "10.9.0.0/-1", "10.9/16", "/8",
                           "10.9.0.0/8x", "fd00::/129", ",", "^eth,docker,lo"})
    CHECK(select_hosts(text, kInterfaces).empty());
  CHECK_THAT(no_selected("ib", kInterfaces),
             ContainsSubstring("KOLO_TCP_HOST='ib' selects no address of this host") &&
                 ContainsSubstring("eth0 10.9.0.1, eth1 10.9.128.7"));
}

TEST_CASE("one address or name is no selection") {
  for (const char* text : {"", "10.9.0.1", "::1", "localhost", "node7", "0.0.0.0"})
    CHECK_FALSE(is_selection(text, kInterfaces));
  for (const char* text : {"eth0", "eth", "=ib0", "^ib0", "10.9.0.0/16", "10.9.0.1,10.9.128.7"})
    CHECK(is_selection(text, kInterfaces));
}

}  // namespace kolo::tcp

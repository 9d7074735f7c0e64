// RDMA hardware as the kernel reports it.
#include "transports/posix/host/rdma.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"

namespace kolo::test {
namespace {

using LinkLayers = std::vector<std::string>;

// A temporary folder like the kernel's.
class RdmaMachine {
 public:
  posix::RdmaPlaces places() const { return {path("class"), path("dev")}; }
  LinkLayers links() const { return posix::rdma_links(places()); }

  void write(const std::string& file, const std::string& line) const {
    const std::filesystem::path whole = path(file);
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << line << '\n';
  }

  // An adapter with its device file and one port.
  void add(const std::string& name, int number, const std::string& link, const std::string& state,
           const std::string& type = "1: CA") const {
    const std::string verbs = "uverbs" + std::to_string(number);
    write("class/infiniband_verbs/" + verbs + "/ibdev", name);
    write("dev/" + verbs, "");
    write("class/infiniband/" + name + "/node_type", type);
    add_port(name, 1, link, state);
  }

  void add_port(const std::string& name, int port, const std::string& link,
                const std::string& state) const {
    const std::string folder = "class/infiniband/" + name + "/ports/" + std::to_string(port);
    write(folder + "/link_layer", link);
    write(folder + "/state", state);
  }

  std::string path(const std::string& file) const { return (folder_.path() / file).string(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a machine without RDMA hardware has no RDMA links") {
  CHECK(RdmaMachine().links().empty());
}

TEST_CASE("the link layers of active RDMA ports are found, each once") {
  const RdmaMachine machine;
  machine.add("mlx5_0", 0, "InfiniBand", "4: ACTIVE");
  machine.add("mlx5_1", 1, "InfiniBand", "4: ACTIVE");
  CHECK(machine.links() == LinkLayers{"InfiniBand"});
  machine.add_port("mlx5_1", 2, "Ethernet", "4: ACTIVE");
  CHECK(machine.links() == LinkLayers{"Ethernet", "InfiniBand"});
}

TEST_CASE("RDMA ports that are not active do not count") {
  const RdmaMachine machine;
  machine.add("mlx5_0", 0, "InfiniBand", "1: DOWN");
  machine.add_port("mlx5_0", 2, "InfiniBand", "2: INIT");
  CHECK(machine.links().empty());
}

TEST_CASE("RDMA adapters in software, and those that UCX cannot use, do not count") {
  const RdmaMachine machine;
  machine.add("rxe0", 0, "Ethernet", "4: ACTIVE");
  machine.write("class/infiniband/rxe0/parent", "eth0");
  machine.add("siw0", 1, "Ethernet", "4: ACTIVE", "4: RNIC");
  machine.add("efa_0", 2, "Unspecified", "4: ACTIVE", "7: <unspecified>");
  CHECK(machine.links().empty());
}

TEST_CASE("an RDMA adapter without a device file does not count") {
  const RdmaMachine machine;
  machine.add("mlx5_0", 0, "InfiniBand", "4: ACTIVE");
  std::filesystem::remove(machine.path("dev/uverbs0"));
  CHECK(machine.links().empty());
}

}  // namespace kolo::test

#include "transports/launch/plan.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <utility>

#include "transports/launch/binding.h"
#include "transports/launch/hosts.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/host/addresses.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"

namespace kolo::inline v0::launch {
namespace {

// A reserved port of an address of this host: the kernel gives it to no other process. It is bound,
// but does not listen, so a rank that sets SO_REUSEADDR, as every server does, can bind it.
class FreePort {
 public:
  explicit FreePort(const std::string& host) {
    std::string why;
    const posix::Address address = posix::resolve(host, 0, why).at(0);
    socket_ = posix::Descriptor(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!socket_.is_open()) posix::throw_system("launcher: socket");
    if (bind(socket_.get(), address.get(), address.length()) != 0)
      posix::throw_system("launcher: no free port on " + host);
    port_ = posix::local_address(socket_).port();
  }

  int port() const { return port_; }

 private:
  posix::Descriptor socket_;
  int port_ = 0;
};

// What the ranks of one host have in common.
struct Services {
  std::string host = posix::loopback_host();
  TcpStoreServer store{host, 0};
  FreePort port{host};
};

using Variables = std::vector<std::pair<std::string, std::string>>;

Plan plan_ranks(const LaunchRequest& request, int first, int size, const Variables& of_job) {
  Plan plan;
  const auto cores = bind_ranks(cores_by_node(), request.ranks, request.binding);
  for (int i = 0; i < request.ranks; ++i) {
    Variables variables{{"RANK", std::to_string(first + i)},
                        {"WORLD_SIZE", std::to_string(size)},
                        {"LOCAL_RANK", std::to_string(i)},
                        {"LOCAL_WORLD_SIZE", std::to_string(request.ranks)}};
    variables.insert(variables.end(), of_job.begin(), of_job.end());
    const bool is_plain = first + i == 0 && request.output == RankOutput::kRankZeroPlain;
    plan.processes.push_back(
        {{request.command, std::move(variables), is_plain,
          cores.empty() ? std::vector<int>() : cores[static_cast<std::size_t>(i)],
          request.descriptors},
         fmt::format("[{}] ", first + i),
         fmt::format("rank {}", first + i)});
  }
  for (const auto& [name, value] : of_job) plan.own_variables.push_back(name + "=" + value);
  return plan;
}

Plan plan_one_host(const LaunchRequest& request) {
  auto services = std::make_shared<Services>();
  const std::string& host = services->host;
  const std::string store = posix::host_and_port(host, services->store.port());
  Plan plan = plan_ranks(request, 0, request.ranks,
                         {{"KOLO_STORE", "tcp://" + store},
                          {"MASTER_ADDR", host},
                          {"MASTER_PORT", std::to_string(services->port.port())}});
  plan.services = std::move(services);
  return plan;
}

Plan plan_hosts(const LaunchRequest& request) {
  auto store = std::make_shared<TcpStoreServer>("", 0);
  Plan plan;
  plan.noun = "host";
  // For the reaper: it ends agents on this host, and remote shells.
  const std::string url = fmt::format("tcp://launcher:{}", store->port());
  plan.own_variables = {"KOLO_STORE=" + url};
  for (const HostShare& share : request.hosts) {
    RankProgram program;
    program.command = command_for(share, request, store->port());
    program.variables = {{"KOLO_STORE", url}};
    program.has_lifeline = true;
    plan.processes.push_back({std::move(program), "", "host " + share.name});
  }
  plan.advice = [](int code) {
    constexpr int kOfSsh = 255;
    return std::string(code == kOfSsh ? "; is it reached by ssh without a password?" : "");
  };
  plan.services = std::move(store);
  return plan;
}

}  // namespace

Plan plan_of(const LaunchRequest& request) {
  if (!request.hosts.empty()) return plan_hosts(request);
  if (!request.part) return plan_one_host(request);
  return plan_ranks(request, request.part->first_rank, request.part->size,
                    {{"KOLO_STORE", request.part->store}});
}

}  // namespace kolo::inline v0::launch

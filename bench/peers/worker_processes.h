// Worker processes of a peer that needs its own launcher, as every MPI does: one beside each rank
// of kolo-bench. They sleep except during the peer's passes.
//
//   rank 0       serves a store, starts the launcher, and reports if it ends too early
//   rank r       puts a request into the store, sleeps, and gets the result from the store
//   worker r     maps the buffers of rank r, runs the pass (pass_runner.h), and sleeps again
//
// Waiting processes are blocked in a system call, so the cores are free for the running ones. When
// a rank or a worker dies, the store tells the others, and all end.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measure/library.h"
#include "bench/measure/pass.h"
#include "bench/p2p/pass.h"
#include "bench/peers/worker_request.h"
#include "transports/posix/descriptor.h"

namespace kolo::bench {

struct StartCommand {
  std::vector<std::string> words;  // the launcher, the program, its arguments
  std::vector<std::pair<std::string, std::string>> environment;
};

class WorkerProcesses {
 public:
  // Collective over the request's ranks. Rank 0 starts `command`, with the store's port, the number
  // of ranks and the timeout in milliseconds appended. `name` is the peer's, for messages. Error
  // kDeadline; kAborted with the launcher's last output.
  WorkerProcesses(std::string name, const LibraryRequest& request, StartCommand command);
  // Ends the processes; kills them if they do not end by themselves.
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // The version that this rank's worker reports.
  const std::string& version() const { return version_; }
  // Collective. Error kDeadline and kAborted.
  PassResult run_pass(const PassRequest& turn, const Buffer& data, const Buffer& input);
  P2pPassResult run_pass(const P2pPassRequest& turn);

 private:
  std::string ask(const WorkerRequest& order, std::chrono::milliseconds patience);
  void start(StartCommand command);
  void watch();
  void end_launcher();
  std::string last_words() const;

  std::string name_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<TcpStoreServer> server_;  // on rank 0
  std::shared_ptr<Store> store_;
  std::string version_;
  int turns_ = 0;
  posix::Descriptor output_;  // of the launcher
  int launcher_ = -1;         // its process
  std::thread watcher_;       // waits for its end
  struct Ending;
  std::unique_ptr<Ending> ending_;
};

}  // namespace kolo::bench

// Messages of a key server: receives requests in the order of their arrival, and sends answers.
//
// Per worker: the next header is always expected, behind the fragments of a gradient. So a worker
// has one gradient in transfer, and the rest waits in its client or in the channel. One answer per
// worker is in transfer; others wait, and the key of highest priority goes next.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "collectives/key_server.h"
#include "collectives/key_server/buffer_pool.h"
#include "collectives/key_server/message.h"
#include "collectives/key_server/served_key.h"

namespace kolo::inline v0::key_server {

// A message that is expected from a worker.
struct Receive {
  Work work;
  std::size_t arrived = 0;  // elements of the gradient, with this fragment; 0: a header
};

// A message to a worker, in transfer.
struct Answer {
  Message header;
  std::size_t key = 0;
  std::shared_ptr<float[]> values;
  Work work;  // the last message
};

struct Worker {
  int rank = 0;
  bool has_finished = false;
  Message header;
  std::deque<Receive> receives;
  std::size_t pushed_key = 0;  // of the gradient in transfer
  bool wants_answer = false;
  std::set<std::size_t> held;      // keys whose answer the rule holds back
  std::set<std::size_t> answered;  // keys whose answer can be sent
  std::optional<Answer> answer;    // in transfer
};

class Server {
 public:
  // Throws std::invalid_argument as serve_keys() does. References are borrowed.
  Server(Communicator& communicator, const KeyPlan& plan, std::span<float> values,
         const KeyUpdateFunction& update, const KeyServerOptions& options);

  // Returns when all workers have finished. If it throws, operations may be in flight: abort then.
  KeyServerStatistics run();

 private:
  bool is_over() const;
  bool serve_one(Deadline limit);
  void send_signs();
  void look_after(Deadline limit);
  void expect_header(Worker& worker);
  void handle_receive(std::size_t index);
  void handle_request(std::size_t index);
  void handle_finish(std::size_t index);
  void begin_gradient(std::size_t index);
  void release(std::size_t key);
  void send_next(Worker& worker);
  void send_waiting(Worker& worker);
  void end_answer(Worker& worker);
  ServedKey& served(std::size_t key) { return *keys_[key]; }
  [[noreturn]] void give_up();
  [[noreturn]] void refuse(const Worker& worker, std::string_view fault);

  Communicator& communicator_;
  const KeyPlan& plan_;
  KeyServerOptions options_;
  KeyServerStatistics statistics_;
  std::vector<int> ranks_;  // of the workers
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<ServedKey>> keys_;  // by number; null: of another server
  // Copy of a key's values while it is sent to one worker or more.
  struct Snapshot {
    std::shared_ptr<float[]> values;
    std::uint64_t updates = 0;
  };
  std::vector<Snapshot> snapshots_;  // by key
  BufferPool buffers_;
  std::vector<Work> awaited_;  // for wait_any
  std::size_t next_worker_ = 0;
  Deadline last_arrival_;
  Deadline last_sign_;
};

}  // namespace kolo::inline v0::key_server

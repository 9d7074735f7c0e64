// Messages with tags, from a given rank or from any.
//
// kolo's messages between two ranks match in the order of issue. Here a message is two of them: an
// *envelope* with tag and length, then the data. A receiver reads envelopes of a peer only while a
// receive may be served by that peer. Data with another tag is kept until its receive comes.
//
// The messages of a group have a communicator of their own, so that collectives do not wait for
// them. Its store has a prefix of its own, too.
//
// Leaving. A receive from any rank leaves envelopes awaited from ranks that sent nothing, and kolo
// cannot take a receive back. So a rank that awaits such envelopes says so in the store. A leaving
// rank sends a farewell to these ranks. (Before it, it stores that it leaves, so that later
// receives from any rank do not wait for it.)
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "collectives/python/torch/backend/work.h"

namespace kolo_torch {

inline constexpr int kAnyRank = -1;

class Mailbox;

// A receive. Its handle keeps the tensor, and ends when a message has been taken.
class ReceiveWork : public KoloWork {
 public:
  ReceiveWork(std::shared_ptr<const Group> group, std::shared_ptr<Mailbox> mailbox, WorkKind kind,
              std::uint64_t sequence, Milliseconds timeout, at::Tensor tensor, int from,
              std::uint64_t tag);

  int sourceRank() const override { return source_; }
  void abort() override { cancel(); }

 protected:
  void help(std::optional<std::chrono::steady_clock::time_point> deadline) override;
  void cancel() override;
  std::string describe() const override;

 private:
  friend class Mailbox;
  bool accepts(int peer, std::uint64_t tag) const {
    return (from_ == peer || from_ == kAnyRank) && tag_ == tag;
  }
  void take(int peer, std::exception_ptr exception);

  const std::weak_ptr<Mailbox> mailbox_;
  const at::Tensor tensor_;  // contiguous, or copied into target_ at the end
  at::Tensor target_;
  const int from_;
  const std::uint64_t tag_;
  int source_ = kAnyRank;
};

class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  // Takes the communicator. `store` has keys of this mailbox alone.
  Mailbox(std::shared_ptr<const Group> group, std::shared_ptr<kolo_communicator> communicator,
          c10::intrusive_ptr<c10d::Store> store);

  // Issues the two messages. Throws if the group has failed.
  void send(KoloWork& work, const at::Tensor& tensor, int to, std::uint64_t tag);
  void receive(const c10::intrusive_ptr<ReceiveWork>& work);

  // The operation of kolo that a receive waits for now; several if from any rank.
  std::vector<std::shared_ptr<kolo_work>> awaited(int from);
  // Takes back a receive that no message has reached.
  void cancel(ReceiveWork& work);

  void abort(const char* reason);
  // Ends the communicator. Waits a short time for ranks from which envelopes are awaited.
  void leave();

 private:
  struct Envelope {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t kind = 0;
    std::uint64_t unused = 0;
  };
  // Data that came before its receive.
  struct Arrival {
    std::uint64_t tag = 0;
    at::Tensor data;
    bool is_complete = false;
    bool is_dropped = false;
    c10::intrusive_ptr<ReceiveWork> taker;
  };
  struct Peer {
    std::shared_ptr<Envelope> envelope;  // null: none is awaited
    bool has_left = false;
    std::deque<std::shared_ptr<Arrival>> arrivals;
    std::shared_ptr<kolo_work> current;
  };
  using Step = std::function<void()>;
  using Callback = std::function<void(const kolo_failure*)>;

  void handle(Step event);
  void post(const c10::intrusive_ptr<ReceiveWork>& work);
  bool take_arrival(const c10::intrusive_ptr<ReceiveWork>& work, int peer);
  void await_envelopes();
  void await_envelope(int peer);
  bool announce_and_look(int peer);
  void announce();
  void on_envelope(int peer, const std::shared_ptr<Envelope>& envelope);
  void on_data(int peer, std::shared_ptr<Arrival> arrival);
  void on_failure(const kolo_failure& failure);
  void fail_receives(int peer, const std::exception_ptr& exception);
  void issue_receive(int peer, void* data, std::size_t bytes, Callback callback);
  std::exception_ptr mismatch(const ReceiveWork& work, int peer, std::uint64_t bytes) const;
  bool is_awaiting();
  void say_farewell();
  void wait_for_farewells();

  const std::shared_ptr<const Group> group_;
  const int rank_;
  const int size_;
  std::mutex send_mutex_;  // an envelope and its data are neighbours

  std::mutex mutex_;  // guards all members below
  std::shared_ptr<kolo_communicator> communicator_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<Peer> peers_;
  std::deque<c10::intrusive_ptr<ReceiveWork>> posted_;
  std::deque<Step> events_;
  std::deque<Step> actions_;
  bool is_handling_ = false;
  bool is_announced_ = false;
  std::exception_ptr failure_;
};

}  // namespace kolo_torch

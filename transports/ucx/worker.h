// UCX's context and worker as one resource: all messages of a rank go through it.
//
// One thread at a time. Callbacks run inside progress() and inside calls that send, and must not
// throw.
#pragma once

#include <string>

#include "transports/ucx/library.h"
#include "transports/ucx/message_header.h"

namespace kolo::inline v0::ucx {

class Worker {
 public:
  // For a job of `size` ranks. Error kUnavailable, with the reason, if UCX has no usable transport.
  // `ucp` must outlive this object.
  Worker(const Library& ucp, int size);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Registers `callback`, with `argument`, for messages of `kind`. Error kSystem.
  void let(Kind kind, ucp_am_recv_callback_t callback, void* argument);

  // Binary address for connect() on other ranks.
  std::string address() const;

  enum class Failures {
    kAreToldByUcx,    // through `callback`, by transports that can report them
    kAreSeenByOthers  // any transport will do, so UCX takes the fastest
  };

  // Creates an endpoint, which lives as long as the worker. It may still be connecting: sent
  // messages wait in UCX. Error kUnavailable if no transport of both ranks reaches the peer.
  ucp_ep_h connect(const std::string& address, Failures failures, ucp_err_handler_cb_t callback,
                   void* argument);

  // UCX's description of a connected endpoint, and of all usable transports. Empty if there is no
  // memory.
  std::string describe(ucp_ep_h endpoint) const;
  std::string describe_resources() const;

  // Returns the number of events; 0 means no event, or only events that UCX does not count.
  unsigned progress() {
    const unsigned happened = ucp_.worker_progress(worker_);
    if (happened > 0) note_news();
    return happened;
  }

  // Notes that an operation has completed. Called from callbacks, since UCX does not count all of
  // them.
  void note_news() { has_news_ = true; }

  // Calls progress() until `is_there()` or until nothing more arrives. After a wait UCX's shared
  // memory delivers one message per call, from any peer, so the awaited message may be behind
  // others.
  template <typename Condition>
  void bring(const Condition& is_there) {
    constexpr int kMost = 64;  // limits the loop if other peers keep sending
    for (int i = 0; i < kMost && progress() > 0 && !is_there(); ++i) {
    }
  }

  // True if UCX holds no more data that count as sent, for any peer. Sends nothing. False also
  // means "unknown": after a false, the next answer comes with progress once all data have left.
  bool has_all_left();

  // True after has_all_left() returned false, until the flush completes. Do not destroy the worker
  // then.
  bool is_flushing() const { return is_flushing_; }

  // Readable, once armed, when progress() has something to do.
  int descriptor() const { return descriptor_; }

  // Returns false if an event is waiting, or has happened since the last call. (A call for one
  // channel may have delivered a message for another one.)
  bool arm();

  // Destroys the worker: nothing moves any more, and no memory is touched. With requests under way
  // the context stays until the process ends: UCX aborts if memory of such requests is registered
  // there (an assertion of 1.18's registration cache).
  enum class Requests { kNone, kUnderWay };
  void close(Requests requests = Requests::kNone) noexcept;

  // As close(), for a worker with endpoints that are still connecting. UCX aborts the process if
  // such an endpoint is destroyed with a request under way (an assertion of 1.13). So the worker
  // stays open, without progress, until the process ends.
  void abandon() noexcept;

  const Library& ucp() const { return ucp_; }
  ucp_worker_h get() const { return worker_; }

 private:
  const Library& ucp_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  bool has_news_ = false;
  bool is_flushing_ = false;
};

// Text of a status: "Connection reset by remote peer".
std::string text_of(const Library& ucp, ucs_status_t status);

}  // namespace kolo::inline v0::ucx

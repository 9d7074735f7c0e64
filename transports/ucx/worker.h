// UCX's context and worker as one resource: all that a rank sends and receives goes through it.
//
// One thread at a time. Callbacks come from progress() and from calls that send, never from
// elsewhere; they must not throw.
#pragma once

#include <string>

#include "transports/ucx/library.h"
#include "transports/ucx/message_header.h"

namespace kolo::ucx {

class Worker {
 public:
  // For a job of `size` ranks. Error kUnavailable where UCX has nothing to run on, with its reason.
  // `ucp` must outlive it.
  Worker(const Library& ucp, int size);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Messages of `kind` go to `callback` with `argument`. Error kSystem.
  void let(Kind kind, ucp_am_recv_callback_t callback, void* argument);

  // The bytes that another rank's connect() takes.
  std::string address() const;

  enum class Failures {
    kAreToldByUcx,    // to `callback`, by transports that can tell
    kAreSeenByOthers  // any transport serves, so that the fastest is taken
  };

  // An endpoint, which lives as long as the worker. It may still be connecting: what is sent waits
  // with UCX. Error kUnavailable where no transport of both reaches the peer.
  ucp_ep_h connect(const std::string& address, Failures failures, ucp_err_handler_cb_t callback,
                   void* argument);

  // What UCX prints of an endpoint that is connected, and of all that it could connect by; empty
  // where there is no memory for it.
  std::string describe(ucp_ep_h endpoint) const;
  std::string describe_resources() const;

  // How much has happened; 0: nothing, or nothing that UCX counts.
  unsigned progress() {
    const unsigned happened = ucp_.worker_progress(worker_);
    if (happened > 0) note_news();
    return happened;
  }

  // Something has come to its end: said by UCX's callbacks, of which it does not count all.
  void note_news() { has_news_ = true; }

  // progress() until `is_there()`, or nothing more has come. After a wait UCX's shared memory
  // brings one message a call, whoever sent it: what is awaited may lie behind others'.
  template <typename Condition>
  void bring(const Condition& is_there) {
    constexpr int kMost = 64;  // others may go on sending
    for (int i = 0; i < kMost && progress() > 0 && !is_there(); ++i) {
    }
  }

  // Whether UCX holds nothing any more of what counts as sent, to whomever. Sends nothing. False as
  // well where that is not known: after a no the next answer comes with progress, when all has
  // left.
  bool has_all_left();

  // Whether a no is still to be taken back. The worker is not to be destroyed then.
  bool is_flushing() const { return is_flushing_; }

  // Readable, once armed, when progress() has something to do.
  int descriptor() const { return descriptor_; }

  // False: something is there already, or has happened since it was last asked. (A call for one
  // channel may have brought what another one waits for.)
  bool arm();

  // Nothing moves any more, and nothing is touched. With requests under way the context stays until
  // the process ends: UCX aborts it where memory of theirs is registered there (an assertion of
  // 1.18's registration cache).
  enum class Requests { kNone, kUnderWay };
  void close(Requests requests = Requests::kNone) noexcept;

  // The same, for who has endpoints that are still connecting: UCX aborts the process where one of
  // these is destroyed with a request to the peer under way (an assertion of 1.13). So the worker
  // stays as it is until the process ends, and nobody moves it.
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

// "Connection reset by remote peer".
std::string text_of(const Library& ucp, ucs_status_t status);

}  // namespace kolo::ucx

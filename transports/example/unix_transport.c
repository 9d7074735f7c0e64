// Example of an external transport, complete: connects ranks of one host by Unix stream sockets.
//
// It sends and receives messages (transports/plugin.h); kolo adds slots, views and credit. Both
// ends know the length of each message, so only its bytes are sent. One message at a time is in
// flight to each peer. What the socket does not take stays in the caller's memory, and progress
// sends it. In each pair, the higher rank connects to the lower rank's listening socket, whose name
// is abstract.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "transports/plugin.h"

// Published in the store: the name of the listening socket and a secret for the hello.
typedef struct EndpointAddress {
  char name[sizeof(((struct sockaddr_un*)0)->sun_path)];
  uint64_t secret;
} EndpointAddress;

typedef struct Hello {
  uint64_t secret;  // of the rank that is called
  int32_t rank;     // of the calling rank
} Hello;

struct kolo_channel {
  int peer;
  int socket;
  const char* out;  // rest of the message in flight
  size_t out_bytes;
  uint64_t taken;       // messages accepted by send_message
  size_t in_bytes;      // received so far of the current message
  int why_out, why_in;  // errno that ended a direction; 0: it is open
};

struct kolo_transport {
  int rank, ranks;
  int epoll;
  kolo_channel channels[];
};

enum { kClosed = -1, kNoReason = 0 };  // instead of errno: the peer has closed; `what` is complete

static kolo_status fail(kolo_error* error, int code, int peer, const char* what, int number) {
  error->code = code;
  error->peer = peer;
  const char* reason = number == kClosed ? "it has closed its socket" : strerror(number);
  snprintf(error->text, sizeof error->text, number == kNoReason ? "%s" : "%s: %s", what, reason);
  return KOLO_FAILED;
}

// --- a channel -----------------------------------------------------------------------------------

// Sends as much of the current message as the socket takes.
static void push(kolo_channel* channel) {
  while (channel->out_bytes > 0 && channel->why_out == 0) {
    const ssize_t sent =
        send(channel->socket, channel->out, channel->out_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      channel->out += sent;
      channel->out_bytes -= (size_t)sent;
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      channel->why_out = errno;
    }
  }
}

static kolo_status send_message(kolo_channel* channel, const void* data, size_t bytes,
                                kolo_error* error) {
  push(channel);
  if (channel->why_out != 0)
    return fail(error, KOLO_PEER_LOST, channel->peer, "sending", channel->why_out);
  if (channel->out_bytes > 0) return KOLO_NOT_NOW;
  channel->out = data;
  channel->out_bytes = bytes;
  ++channel->taken;
  push(channel);
  return KOLO_DONE;
}

static kolo_status completed(kolo_channel* channel, uint64_t* messages, kolo_error* error) {
  push(channel);
  *messages = channel->taken - (channel->out_bytes > 0);
  if (channel->out_bytes > 0 && channel->why_out != 0)
    return fail(error, KOLO_PEER_LOST, channel->peer, "sending", channel->why_out);
  return KOLO_DONE;
}

// Data that arrived before the peer's end can still be read, even if sending has failed.
static kolo_status receive_message(kolo_channel* channel, void* into, size_t bytes,
                                   kolo_error* error) {
  while (channel->in_bytes < bytes && channel->why_in == 0) {
    const ssize_t got = recv(channel->socket, (char*)into + channel->in_bytes,
                             bytes - channel->in_bytes, MSG_DONTWAIT);
    if (got > 0) {
      channel->in_bytes += (size_t)got;
    } else if (got == 0) {
      channel->why_in = kClosed;
    } else if (errno == EAGAIN) {
      return KOLO_NOT_NOW;
    } else if (errno != EINTR) {
      channel->why_in = errno;
    }
  }
  if (channel->in_bytes < bytes)
    return fail(error, KOLO_PEER_LOST, channel->peer, "receiving", channel->why_in);
  channel->in_bytes = 0;
  return KOLO_DONE;
}

// --- the transport -------------------------------------------------------------------------------

static kolo_channel* channel_to(kolo_transport* transport, int peer) {
  return &transport->channels[peer];
}

static kolo_status progress(kolo_transport* transport, kolo_error* error) {
  (void)error;
  for (int peer = 0; peer < transport->ranks; ++peer) push(&transport->channels[peer]);
  return KOLO_DONE;
}

static void quiesce(kolo_transport* transport) {
  for (int peer = 0; peer < transport->ranks; ++peer) {
    kolo_channel* channel = &transport->channels[peer];
    if (channel->socket >= 0) close(channel->socket);
    channel->socket = -1;
  }
}

static void destroy(kolo_transport* transport) {
  quiesce(transport);
  if (transport->epoll >= 0) close(transport->epoll);
  free(transport);
}

// Sleep. The sockets are watched edge-triggered: an event that was reported once and left unhandled
// does not wake this rank again.
static int descriptor(kolo_transport* transport) { return transport->epoll; }

static kolo_status arm(kolo_transport* transport, kolo_error* error) {
  struct epoll_event events[16];
  const int ready = epoll_wait(transport->epoll, events, 16, 0);
  if (ready < 0 && errno != EINTR) return fail(error, KOLO_SYSTEM, -1, "epoll_wait", errno);
  return ready == 0 ? KOLO_DONE : KOLO_NOT_NOW;
}

static void disarm(kolo_transport* transport) { (void)transport; }

// --- bootstrap -----------------------------------------------------------------------------------

// Wait time until the next check of the job and the deadline; 0 if the deadline has passed.
static int wait_ms(const kolo_plugin_request* request) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t left_ns =
      request->deadline_ns - ((int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec);
  return left_ns <= 0 ? 0 : left_ns > 20000000 ? 20 : (int)(left_ns / 1000000) + 1;
}

static int make_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// Listens at a name chosen by the kernel (autobind).
static kolo_status listen_here(int listener, EndpointAddress* endpoint, kolo_error* error) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t length = sizeof address.sun_family;
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, length) != 0 ||
      listen(listener, SOMAXCONN) != 0)
    return fail(error, KOLO_SYSTEM, -1, "listening on a Unix socket", errno);
  length = sizeof address;
  getsockname(listener, (struct sockaddr*)&address, &length);
  memcpy(endpoint->name, address.sun_path, sizeof endpoint->name);
  if (getrandom(&endpoint->secret, sizeof endpoint->secret, 0) != sizeof endpoint->secret)
    return fail(error, KOLO_SYSTEM, -1, "getrandom", errno);
  return KOLO_DONE;
}

static kolo_status call(kolo_transport* transport, int peer, const EndpointAddress* endpoint,
                        kolo_error* error) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, endpoint->name, sizeof endpoint->name);
  // Autobind names are a zero byte and five digits. The listener's backlog is the longest possible,
  // so that connect() does not fail with EAGAIN.
  const socklen_t length = (socklen_t)(sizeof address.sun_family + 6);
  const Hello hello = {endpoint->secret, transport->rank};
  const int socket = transport->channels[peer].socket = make_socket();
  if (socket < 0) return fail(error, KOLO_SYSTEM, -1, "making a Unix socket", errno);
  if (connect(socket, (struct sockaddr*)&address, length) != 0 ||
      send(socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    return fail(error, KOLO_PEER_LOST, peer, "connecting", errno);
  return KOLO_DONE;
}

// Longest wait for a hello. Ranks send it at once, so only silent unknown clients cost this time.
enum { kHelloMs = 1000 };

// Accepts connections until all higher ranks have connected. Closes those without a valid hello.
static kolo_status take_calls(kolo_transport* transport, const kolo_plugin_request* request,
                              int listener, uint64_t secret, kolo_error* error) {
  int missing = transport->ranks - 1 - transport->rank;
  while (missing > 0) {
    const int left = wait_ms(request);
    if (left == 0)
      return fail(error, KOLO_DEADLINE, -1, "waiting for the others to connect", ETIMEDOUT);
    if (request->store->check(request->store, error) == KOLO_FAILED) return KOLO_FAILED;
    struct pollfd watched = {listener, POLLIN, 0};
    poll(&watched, 1, left);
    const int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) continue;
    struct pollfd caller = {socket, POLLIN, 0};
    poll(&caller, 1, kHelloMs);
    Hello hello;
    const ssize_t got = recv(socket, &hello, sizeof hello, MSG_DONTWAIT);
    const int is_ours = got == sizeof hello && hello.secret == secret &&
                        hello.rank > transport->rank && hello.rank < transport->ranks &&
                        transport->channels[hello.rank].socket < 0;
    if (is_ours) transport->channels[hello.rank].socket = socket;
    if (is_ours) --missing;
    if (!is_ours) close(socket);
  }
  return KOLO_DONE;
}

static kolo_status meet(kolo_transport* transport, const kolo_plugin_request* request, int listener,
                        kolo_error* error) {
  EndpointAddress own = {{0}, 0};
  EndpointAddress endpoints[transport->ranks];
  if (listen_here(listener, &own, error) == KOLO_FAILED) return KOLO_FAILED;
  if (request->store->gather(request->store, "address", &own, sizeof own, request->deadline_ns,
                             "say where they listen", endpoints, error) == KOLO_FAILED)
    return KOLO_FAILED;
  for (int peer = 0; peer < transport->rank; ++peer) {
    if (call(transport, peer, &endpoints[peer], error) == KOLO_FAILED) return KOLO_FAILED;
  }
  if (take_calls(transport, request, listener, own.secret, error) == KOLO_FAILED)
    return KOLO_FAILED;
  for (int peer = 0; peer < transport->ranks; ++peer) {
    struct epoll_event watched = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    const int socket = transport->channels[peer].socket;
    if (socket >= 0 && epoll_ctl(transport->epoll, EPOLL_CTL_ADD, socket, &watched) != 0)
      return fail(error, KOLO_SYSTEM, -1, "epoll_ctl", errno);
  }
  return KOLO_DONE;
}

static kolo_status make(const kolo_plugin_request* request, kolo_transport** made,
                        kolo_error* error) {
  const size_t ranks = (size_t)request->ranks;
  if (*request->options != '\0')  // a misspelt option must not be ignored
    return fail(error, KOLO_UNAVAILABLE, -1, "it has no options, leave out the ? and the rest",
                kNoReason);
  kolo_transport* transport = calloc(1, sizeof *transport + ranks * sizeof(kolo_channel));
  if (transport == NULL) return fail(error, KOLO_SYSTEM, -1, "a transport", ENOMEM);
  transport->rank = request->rank;
  transport->ranks = request->ranks;
  transport->epoll = epoll_create1(EPOLL_CLOEXEC);
  for (int peer = 0; peer < request->ranks; ++peer) {
    transport->channels[peer].peer = peer;
    transport->channels[peer].socket = -1;
  }
  const int listener = make_socket();
  const kolo_status status = meet(transport, request, listener, error);
  if (listener >= 0) close(listener);  // no later connections: a lost rank stays lost
  if (status == KOLO_FAILED) destroy(transport);
  if (status == KOLO_DONE) *made = transport;
  return status;
}

const kolo_plugin* kolo_transport_plugin(void) {
  static const kolo_plugin table = {.version = KOLO_PLUGIN_VERSION,
                                    .size = sizeof table,
                                    .name = "unix",
                                    .reach = KOLO_HOST,
                                    .make = make,
                                    .destroy = destroy,
                                    .channel = channel_to,
                                    .progress = progress,
                                    .quiesce = quiesce,
                                    .descriptor = descriptor,
                                    .arm = arm,
                                    .disarm = disarm,
                                    .send = send_message,
                                    .receive = receive_message,
                                    .completed = completed};
  return &table;
}

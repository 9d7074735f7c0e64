// When a rank may sleep, and what it learns about the data that UCX still holds.
#include "transports/ucx/worker.h"

#include "test/support/catch.h"
#include "test/transports/ucx/fake_ucx.h"
#include "transports/ucx/outbox.h"

using namespace kolo;
using namespace kolo::test;

namespace {

template <typename Ended>
void finish(const Ended& ended) {
  int request = 0;
  ended.callback(&request, UCS_OK, ended.user_data);
}

}  // namespace

// A progress call for one channel may have handled events of another one.
TEST_CASE("a rank that has made progress checks once more before it sleeps") {
  ucx::Worker worker(fake_library(), 2);
  CHECK(worker.arm());
  played().happens = 1;
  worker.progress();
  played().happens = 0;
  worker.progress();
  CHECK_FALSE(worker.arm());
  CHECK(worker.arm());
}

TEST_CASE("a send that completes in a call without reported progress prevents sleep once") {
  ucx::Worker worker(fake_library(), 2);
  ucx::Outbox outbox(worker, 7, 3, 4096);
  played().completes_at_once = false;
  outbox.send_segment({}, 0);
  CHECK(worker.arm());
  finish(played().sent.at(0));
  CHECK_FALSE(worker.arm());
  CHECK(worker.arm());
}

TEST_CASE("one flush runs at a time until UCX holds no more data") {
  ucx::Worker worker(fake_library(), 2);
  played().keeps_sent = true;
  CHECK_FALSE(worker.has_all_left());
  CHECK(worker.is_flushing());
  CHECK_FALSE(worker.has_all_left());
  CHECK(played().flushes.size() == 1);
  finish(played().flushes.at(0));
  CHECK_FALSE(worker.is_flushing());
  CHECK_FALSE(worker.arm());
  played().keeps_sent = false;
  CHECK(worker.has_all_left());
  CHECK_FALSE(worker.is_flushing());
}

// Flushing an endpoint of tcp sends a message, which the peer has to answer.
TEST_CASE("the worker's flush does not flush endpoints") {
  const ucx::Worker worker(fake_library(), 2);
  CHECK(played().settings.at("FLUSH_WORKER_EPS") == "n");
}

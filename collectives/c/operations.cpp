// Collectives and messages of the C interface.
#include <cstring>

#include "collectives/c/handles.h"
#include "collectives/c/kolo_servers.h"

namespace kolo::inline v0::c_interface {

namespace {

std::string failed_with(const char* function, int status) {
  return std::string("the caller's function ") + function + " failed with " +
         std::to_string(status);
}

CallOptions call_options(const kolo_call* call, kolo_op op) {
  CallOptions options;
  if (call == nullptr) return options;
  const kolo_call fields = fields_of(call, "kolo_call");
  options.algorithm = text_of(fields.algorithm);
  options.segment_bytes = fields.segment_bytes;
  options.is_persistent = fields.is_persistent != 0;
  if (fields.timeout_ms < 0) refuse("kolo_call.timeout_ms is below 0");
  options.timeout = std::chrono::milliseconds(fields.timeout_ms);
  if (op == KOLO_SCALED_SUM) options.scale = fields.scale;
  return options;
}

// For the case of a failure, the caller's work handle is null.
kolo_work** cleared(kolo_work** work) {
  if (work != nullptr) *work = nullptr;
  return work;
}

}  // namespace

Call::Call(kolo_communicator* communicator, const kolo_call* call, kolo_op op, kolo_work** work)
    : place_(cleared(work)), world(held(communicator)), options(call_options(call, op)) {
  if (place_ == nullptr) {
    if (options.is_persistent) refuse("a persistent operation needs a work handle: `work` is null");
    return;
  }
  made_ = std::make_unique<kolo_work>();
  made_->shared = communicator->shared;
}

void Call::set_work(Work work) {
  made_->work = std::move(work);
  *place_ = made_.release();
}

std::optional<UserReduceOp> user_op(kolo_op op, const kolo_call* call) {
  if (op != KOLO_USER) return std::nullopt;
  const kolo_call fields = fields_of(call, "kolo_call");
  if (fields.user_op == nullptr) refuse("KOLO_USER needs a function: set kolo_call.user_op");
  const kolo_user_op given = fields_of(fields.user_op, "kolo_user_op");
  if (given.combine == nullptr) refuse("kolo_user_op.combine is null");
  UserReduceOp made;
  made.element_bytes = given.element_bytes;
  made.is_commutative = given.is_not_commutative == 0;
  made.tag = given.tag;
  made.combine = [combine = given.combine, context = given.context](
                     void* out, const void* left, const void* right, std::size_t count) {
    const InCallback in_callback;
    if (const int status = combine(context, out, left, right, count); status != 0)
      throw std::runtime_error(failed_with("kolo_user_op.combine", status));
  };
  return made;
}

Reduction reduction(kolo_op op, const std::optional<UserReduceOp>& user) {
  if (user) return *user;
  if (op < KOLO_SUM || op > KOLO_SCALED_SUM) refuse_number(op, "kolo_op, such as KOLO_SUM");
  return static_cast<ReduceOp>(op);
}

Elements::Elements(kolo_type given, const std::optional<UserReduceOp>& user) {
  if (user) {
    type = kUserElement;
    user_bytes = static_cast<std::uint32_t>(user->element_bytes);
    return;
  }
  if (given < KOLO_FLOAT32 || given > KOLO_UINT64)
    refuse_number(given, "kolo_type, such as KOLO_FLOAT32");
  type = static_cast<ElementType>(given);
}

Buffer Elements::buffer(void* data, std::size_t count) const {
  Buffer made(data, count, type);
  made.user_bytes = user_bytes;
  return made;
}

ConstBuffer Elements::buffer(const void* data, std::size_t count) const {
  ConstBuffer made(data, count, type);
  made.user_bytes = user_bytes;
  return made;
}

namespace {

// Arguments of a reduction. User functions outlive the call that uses them.
struct Reduced {
  Reduced(kolo_type type, kolo_op op, const kolo_call* call)
      : user(user_op(op, call)), elements(type, user), reduced(reduction(op, user)) {}
  Reduced(const Reduced&) = delete;
  Reduced& operator=(const Reduced&) = delete;

  std::optional<UserReduceOp> user;
  Elements elements;
  Reduction reduced;
};

// The server plan and update function of a call.
ServerPlan server_plan(const kolo_server_plan* given) {
  if (given == nullptr) refuse("the server plan is null");
  const kolo_server_plan fields = fields_of(given, "kolo_server_plan");
  if (fields.servers == nullptr && fields.server_count > 0)
    refuse("kolo_server_plan.servers is null");
  ServerPlan plan;
  plan.everywhere = fields.everywhere != 0;
  plan.servers.assign(fields.servers, fields.servers + fields.server_count);
  if (fields.parts != nullptr) plan.parts.assign(fields.parts, fields.parts + fields.part_count);
  return plan;
}

ServerUpdate server_update(const kolo_server_update* given) {
  const kolo_server_update fields = fields_of(given, "kolo_server_update");
  if (fields.update == nullptr) return {};
  return [update = fields.update, context = fields.context](std::size_t first,
                                                            std::span<std::byte> sums) {
    const InCallback in_callback;
    if (const int status = update(context, first, sums.data(), sums.size()); status != 0)
      throw std::runtime_error(failed_with("kolo_server_update.update", status));
  };
}

Counts counts_of(const size_t* counts, const Communicator& world) {
  if (counts == nullptr) refuse("the list of counts is null: it needs an entry for each rank");
  return {counts, static_cast<std::size_t>(world.size())};
}

std::size_t total(Counts counts) {
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

std::size_t own(Counts counts, const Communicator& world) {
  return counts[static_cast<std::size_t>(world.rank())];
}

std::size_t own_chunk(std::size_t count, const Communicator& world) {
  return chunk_count(count, world.size(), world.rank());
}

std::size_t own_share(const ServerPlan& plan, const Communicator& world, std::size_t count) {
  return share_of(plan, world.rank(), world.size(), count).count;
}

}  // namespace

}  // namespace kolo::inline v0::c_interface

using namespace kolo;
using namespace kolo::c_interface;

kolo_result kolo_all_reduce(kolo_communicator* communicator, const void* in, void* out,
                            size_t count, kolo_type type, kolo_op op, const kolo_call* call,
                            kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(out, count);
    if (!to.is_async()) return to.world.all_reduce(from, into, r.reduced, to.options);
    to.set_work(to.world.all_reduce_async(from, into, r.reduced, to.options));
  });
}

kolo_result kolo_reduce_scatter(kolo_communicator* communicator, const void* all, void* chunk,
                                size_t count, kolo_type type, kolo_op op, const kolo_call* call,
                                kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const auto from = r.elements.buffer(all, count);
    const auto into = r.elements.buffer(chunk, own_chunk(count, to.world));
    if (!to.is_async()) return to.world.reduce_scatter(from, into, r.reduced, to.options);
    to.set_work(to.world.reduce_scatter_async(from, into, r.reduced, to.options));
  });
}

kolo_result kolo_all_gather(kolo_communicator* communicator, const void* chunk, void* all,
                            size_t count, kolo_type type, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto from = elements.buffer(chunk, own_chunk(count, to.world));
    const auto into = elements.buffer(all, count);
    if (!to.is_async()) return to.world.all_gather(from, into, to.options);
    to.set_work(to.world.all_gather_async(from, into, to.options));
  });
}

kolo_result kolo_broadcast(kolo_communicator* communicator, void* data, size_t count,
                           kolo_type type, int root, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto both = elements.buffer(data, count);
    if (!to.is_async()) return to.world.broadcast(both, root, to.options);
    to.set_work(to.world.broadcast_async(both, root, to.options));
  });
}

kolo_result kolo_reduce(kolo_communicator* communicator, const void* in, void* out, size_t count,
                        kolo_type type, kolo_op op, int root, const kolo_call* call,
                        kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(out, count);
    if (!to.is_async()) return to.world.reduce(from, into, root, r.reduced, to.options);
    to.set_work(to.world.reduce_async(from, into, root, r.reduced, to.options));
  });
}

kolo_result kolo_gather(kolo_communicator* communicator, const void* chunk, void* all, size_t count,
                        kolo_type type, int root, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto from = elements.buffer(chunk, own_chunk(count, to.world));
    const auto into = elements.buffer(all, count);
    if (!to.is_async()) return to.world.gather(from, into, root, to.options);
    to.set_work(to.world.gather_async(from, into, root, to.options));
  });
}

kolo_result kolo_scatter(kolo_communicator* communicator, const void* all, void* chunk,
                         size_t count, kolo_type type, int root, const kolo_call* call,
                         kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto from = elements.buffer(all, count);
    const auto into = elements.buffer(chunk, own_chunk(count, to.world));
    if (!to.is_async()) return to.world.scatter(from, into, root, to.options);
    to.set_work(to.world.scatter_async(from, into, root, to.options));
  });
}

kolo_result kolo_all_to_all(kolo_communicator* communicator, const void* in, void* out,
                            size_t count, kolo_type type, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto from = elements.buffer(in, count);
    const auto into = elements.buffer(out, count);
    if (!to.is_async()) return to.world.all_to_all(from, into, to.options);
    to.set_work(to.world.all_to_all_async(from, into, to.options));
  });
}

kolo_result kolo_scan(kolo_communicator* communicator, const void* in, void* out, size_t count,
                      kolo_type type, kolo_op op, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(out, count);
    if (!to.is_async()) return to.world.scan(from, into, r.reduced, to.options);
    to.set_work(to.world.scan_async(from, into, r.reduced, to.options));
  });
}

kolo_result kolo_exclusive_scan(kolo_communicator* communicator, const void* in, void* out,
                                size_t count, kolo_type type, kolo_op op, const kolo_call* call,
                                kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(out, count);
    if (!to.is_async()) return to.world.exclusive_scan(from, into, r.reduced, to.options);
    to.set_work(to.world.exclusive_scan_async(from, into, r.reduced, to.options));
  });
}

kolo_result kolo_barrier(kolo_communicator* communicator, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    if (!to.is_async()) return to.world.barrier(to.options);
    to.set_work(to.world.barrier_async(to.options));
  });
}

kolo_result kolo_reduce_scatter_v(kolo_communicator* communicator, const void* all, void* share,
                                  const size_t* counts, kolo_type type, kolo_op op,
                                  const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const Counts each = counts_of(counts, to.world);
    const auto from = r.elements.buffer(all, total(each));
    const auto into = r.elements.buffer(share, own(each, to.world));
    if (!to.is_async()) return to.world.reduce_scatter_v(from, into, each, r.reduced, to.options);
    to.set_work(to.world.reduce_scatter_v_async(from, into, each, r.reduced, to.options));
  });
}

kolo_result kolo_all_gather_v(kolo_communicator* communicator, const void* share, void* all,
                              const size_t* counts, kolo_type type, const kolo_call* call,
                              kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const Counts each = counts_of(counts, to.world);
    const auto from = elements.buffer(share, own(each, to.world));
    const auto into = elements.buffer(all, total(each));
    if (!to.is_async()) return to.world.all_gather_v(from, into, each, to.options);
    to.set_work(to.world.all_gather_v_async(from, into, each, to.options));
  });
}

kolo_result kolo_gather_v(kolo_communicator* communicator, const void* share, size_t share_count,
                          void* all, const size_t* counts, kolo_type type, int root,
                          const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const Counts each = to.world.rank() == root ? counts_of(counts, to.world) : Counts();
    const auto from = elements.buffer(share, share_count);
    const auto into = elements.buffer(all, total(each));
    if (!to.is_async()) return to.world.gather_v(from, into, each, root, to.options);
    to.set_work(to.world.gather_v_async(from, into, each, root, to.options));
  });
}

kolo_result kolo_scatter_v(kolo_communicator* communicator, const void* all, const size_t* counts,
                           void* share, size_t share_count, kolo_type type, int root,
                           const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const Counts each = to.world.rank() == root ? counts_of(counts, to.world) : Counts();
    const auto from = elements.buffer(all, total(each));
    const auto into = elements.buffer(share, share_count);
    if (!to.is_async()) return to.world.scatter_v(from, into, each, root, to.options);
    to.set_work(to.world.scatter_v_async(from, into, each, root, to.options));
  });
}

kolo_result kolo_all_to_all_v(kolo_communicator* communicator, const void* in, const size_t* gives,
                              void* out, const size_t* gets, kolo_type type, const kolo_call* call,
                              kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const Counts given = counts_of(gives, to.world);
    const Counts got = counts_of(gets, to.world);
    const auto from = elements.buffer(in, total(given));
    const auto into = elements.buffer(out, total(got));
    if (!to.is_async()) return to.world.all_to_all_v(from, given, into, got, to.options);
    to.set_work(to.world.all_to_all_v_async(from, given, into, got, to.options));
  });
}

kolo_result kolo_send(kolo_communicator* communicator, const void* data, size_t count,
                      kolo_type type, int to_rank, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto message = elements.buffer(data, count);
    if (!to.is_async()) return to.world.send(message, to_rank, to.options);
    to.set_work(to.world.send_async(message, to_rank, to.options));
  });
}

kolo_result kolo_receive(kolo_communicator* communicator, void* data, size_t count, kolo_type type,
                         int from, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const auto message = elements.buffer(data, count);
    if (!to.is_async()) return to.world.receive(message, from, to.options);
    to.set_work(to.world.receive_async(message, from, to.options));
  });
}

kolo_result kolo_send_receive(kolo_communicator* communicator, const void* sent, size_t sent_count,
                              int to_rank, void* received, size_t received_count, int from,
                              kolo_type type, const kolo_call* call) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, nullptr);
    const Elements elements(type, {});
    to.world.send_receive(elements.buffer(sent, sent_count), to_rank,
                          elements.buffer(received, received_count), from, to.options);
  });
}

kolo_result kolo_push_pull(kolo_communicator* communicator, const void* in, void* out, size_t count,
                           kolo_type type, kolo_op op, const kolo_server_plan* plan,
                           const kolo_server_update* update, const kolo_call* call,
                           kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const ServerPlan servers = server_plan(plan);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(out, count);
    if (!to.is_async())
      return to.world.push_pull(from, into, r.reduced, servers, server_update(update), to.options);
    to.set_work(to.world.push_pull_async(from, into, r.reduced, servers, server_update(update),
                                         to.options));
  });
}

kolo_result kolo_push(kolo_communicator* communicator, const void* in, void* share, size_t count,
                      kolo_type type, kolo_op op, const kolo_server_plan* plan,
                      const kolo_server_update* update, const kolo_call* call, kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, op, work);
    const Reduced r(type, op, call);
    const ServerPlan servers = server_plan(plan);
    const auto from = r.elements.buffer(in, count);
    const auto into = r.elements.buffer(share, own_share(servers, to.world, count));
    if (!to.is_async())
      return to.world.push(from, into, r.reduced, servers, server_update(update), to.options);
    to.set_work(
        to.world.push_async(from, into, r.reduced, servers, server_update(update), to.options));
  });
}

kolo_result kolo_pull(kolo_communicator* communicator, const void* share, void* out, size_t count,
                      kolo_type type, const kolo_server_plan* plan, const kolo_call* call,
                      kolo_work** work) {
  return counted(communicator, [&] {
    Call to(communicator, call, KOLO_SUM, work);
    const Elements elements(type, {});
    const ServerPlan servers = server_plan(plan);
    const auto from = elements.buffer(share, own_share(servers, to.world, count));
    const auto into = elements.buffer(out, count);
    if (!to.is_async()) return to.world.pull(from, into, servers, to.options);
    to.set_work(to.world.pull_async(from, into, servers, to.options));
  });
}

kolo_result kolo_server_share(const kolo_server_plan* plan, int rank, int size, size_t count,
                              size_t* share_begin, size_t* share_count) {
  return guarded(nullptr, [&] {
    if (share_begin == nullptr || share_count == nullptr)
      refuse("`share_begin` or `share_count` is null; the result is stored there");
    if (rank < 0 || rank >= size) refuse("the rank is not one of the `size` ranks");
    const ServerShare share = share_of(server_plan(plan), rank, size, count);
    *share_begin = share.begin;
    *share_count = share.count;
  });
}

size_t kolo_type_bytes(kolo_type type) {
  if (type < KOLO_FLOAT32 || type > KOLO_UINT64) return 0;
  return element_bytes(static_cast<ElementType>(type));
}

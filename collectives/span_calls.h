// Collectives over spans of floats, doubles, ...: forms of the Communicator's calls without
// options, in place where possible.
//
// Lengths that the spans state twice are checked before anything is sent. std::invalid_argument: a
// span is not as long as another span or a count requires. The error names the rank, the call, both
// lengths, and the length to pass.
//
// T is deduced from the span that is written: all_gather(mine, std::span(all)).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "element.h"
#include "work.h"

namespace kolo {

// One number of elements per rank.
using Counts = std::span<const std::size_t>;

namespace span_calls {

// The call and the rank of a check, for its error message.
struct Caller {
  std::string_view call;
  int rank;
  int size;
};

// These throw std::invalid_argument unless ...
// `given` is this rank's chunk_count() of `all` elements;
void check_chunk(const Caller& who, std::size_t given, std::size_t all);
// `in` equals `out`;
void check_same_length(const Caller& who, std::size_t in, std::size_t out);
// the list `counts`, named `name`, has one entry per rank, and its sum is `given`;
void check_sum(const Caller& who, std::string_view name, Counts counts, std::size_t given);
// the entry of this rank is `given`.
void check_own(const Caller& who, Counts counts, std::size_t given);

// The chunk_count() of each rank for `all` elements.
std::vector<std::size_t> equal_shares(std::size_t all, int size);

}  // namespace span_calls

// Base class of Communicator, which is `World`.
template <typename World>
class SpanCalls {
 public:
  // In place.
  template <typename T, std::size_t N>
  void all_reduce(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    world().all_reduce(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work all_reduce_async(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    return world().all_reduce_async(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  void broadcast(std::span<T, N> data, int root = 0) {
    world().broadcast(data.data(), data.size(), kElementTypeOf<T>, root);
  }
  template <typename T, std::size_t N>
  Work broadcast_async(std::span<T, N> data, int root = 0) {
    return world().broadcast_async(data.data(), data.size(), kElementTypeOf<T>, root);
  }
  // In place at the root; the data of other ranks does not change.
  template <typename T, std::size_t N>
  void reduce(std::span<T, N> data, int root = 0, ReduceOp op = ReduceOp::kSum) {
    world().reduce(data.data(), world().rank() == root ? data.data() : nullptr, data.size(),
                   kElementTypeOf<T>, op, root);
  }
  template <typename T, std::size_t N>
  Work reduce_async(std::span<T, N> data, int root = 0, ReduceOp op = ReduceOp::kSum) {
    return world().reduce_async(data.data(), world().rank() == root ? data.data() : nullptr,
                                data.size(), kElementTypeOf<T>, op, root);
  }
  // In place: `data` becomes the reduction over the ranks up to this one; in an exclusive_scan over
  // the ranks before it, where rank 0's data does not change.
  template <typename T, std::size_t N>
  void scan(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    world().scan(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work scan_async(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    return world().scan_async(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  void exclusive_scan(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    world().exclusive_scan(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work exclusive_scan_async(std::span<T, N> data, ReduceOp op = ReduceOp::kSum) {
    return world().exclusive_scan_async(data.data(), data.data(), data.size(), kElementTypeOf<T>,
                                        op);
  }

  // `all` has the same length on every rank; `chunk` has the length chunk_count() of it.
  template <typename T, std::size_t N>
  void all_gather(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all) {
    span_calls::check_chunk(who("all_gather"), chunk.size(), all.size());
    world().all_gather(chunk.data(), all.data(), all.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_gather_async(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all) {
    span_calls::check_chunk(who("all_gather"), chunk.size(), all.size());
    return world().all_gather_async(chunk.data(), all.data(), all.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  void reduce_scatter(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk,
                      ReduceOp op = ReduceOp::kSum) {
    span_calls::check_chunk(who("reduce_scatter"), chunk.size(), all.size());
    world().reduce_scatter(all.data(), chunk.data(), all.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work reduce_scatter_async(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk,
                            ReduceOp op = ReduceOp::kSum) {
    span_calls::check_chunk(who("reduce_scatter"), chunk.size(), all.size());
    return world().reduce_scatter_async(all.data(), chunk.data(), all.size(), kElementTypeOf<T>,
                                        op);
  }
  // One share per rank, packed; `in` and `out` are equally long.
  template <typename T, std::size_t N>
  void all_to_all(std::type_identity_t<std::span<const T>> in, std::span<T, N> out) {
    span_calls::check_same_length(who("all_to_all"), in.size(), out.size());
    world().all_to_all(in.data(), out.data(), out.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_to_all_async(std::type_identity_t<std::span<const T>> in, std::span<T, N> out) {
    span_calls::check_same_length(who("all_to_all"), in.size(), out.size());
    return world().all_to_all_async(in.data(), out.data(), out.size(), kElementTypeOf<T>);
  }
  // `all` is used at the root only. The other ranks know only the length of their chunk, which must
  // be chunk_count() of `all`. So these calls run the algorithms of gather_v and scatter_v, and a
  // different length is an error kMismatch. Every rank must call this form.
  template <typename T, std::size_t N>
  void gather(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all, int root = 0) {
    const auto counts = shares_at("gather", chunk.size(), all.size(), root);
    world().gather_v(chunk.data(), chunk.size(), all.data(), counts, kElementTypeOf<T>, root);
  }
  template <typename T, std::size_t N>
  Work gather_async(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all,
                    int root = 0) {
    const auto counts = shares_at("gather", chunk.size(), all.size(), root);
    return world().gather_v_async(chunk.data(), chunk.size(), all.data(), counts, kElementTypeOf<T>,
                                  root);
  }
  template <typename T, std::size_t N>
  void scatter(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk, int root = 0) {
    const auto counts = shares_at("scatter", chunk.size(), all.size(), root);
    world().scatter_v(all.data(), counts, chunk.data(), chunk.size(), kElementTypeOf<T>, root);
  }
  template <typename T, std::size_t N>
  Work scatter_async(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk,
                     int root = 0) {
    const auto counts = shares_at("scatter", chunk.size(), all.size(), root);
    return world().scatter_v_async(all.data(), counts, chunk.data(), chunk.size(),
                                   kElementTypeOf<T>, root);
  }

  // Shares of any length: rank r's share has counts[r] elements, and `all` has their sum. All ranks
  // pass the same counts. In gather_v and scatter_v, `all` and `counts` are used at the root only.
  template <typename T, std::size_t N>
  void all_gather_v(std::type_identity_t<std::span<const T>> share, std::span<T, N> all,
                    Counts counts) {
    check_share("all_gather_v", counts, share.size(), all.size());
    world().all_gather_v(share.data(), all.data(), counts, kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_gather_v_async(std::type_identity_t<std::span<const T>> share, std::span<T, N> all,
                          Counts counts) {
    check_share("all_gather_v", counts, share.size(), all.size());
    return world().all_gather_v_async(share.data(), all.data(), counts, kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  void reduce_scatter_v(std::type_identity_t<std::span<const T>> all, std::span<T, N> share,
                        Counts counts, ReduceOp op = ReduceOp::kSum) {
    check_share("reduce_scatter_v", counts, share.size(), all.size());
    world().reduce_scatter_v(all.data(), share.data(), counts, kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work reduce_scatter_v_async(std::type_identity_t<std::span<const T>> all, std::span<T, N> share,
                              Counts counts, ReduceOp op = ReduceOp::kSum) {
    check_share("reduce_scatter_v", counts, share.size(), all.size());
    return world().reduce_scatter_v_async(all.data(), share.data(), counts, kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  void gather_v(std::type_identity_t<std::span<const T>> share, std::span<T, N> all, Counts counts,
                int root = 0) {
    counts = counts_at("gather_v", counts, share.size(), all.size(), root);
    world().gather_v(share.data(), share.size(), all.data(), counts, kElementTypeOf<T>, root);
  }
  template <typename T, std::size_t N>
  Work gather_v_async(std::type_identity_t<std::span<const T>> share, std::span<T, N> all,
                      Counts counts, int root = 0) {
    counts = counts_at("gather_v", counts, share.size(), all.size(), root);
    return world().gather_v_async(share.data(), share.size(), all.data(), counts, kElementTypeOf<T>,
                                  root);
  }
  template <typename T, std::size_t N>
  void scatter_v(std::type_identity_t<std::span<const T>> all, Counts counts, std::span<T, N> share,
                 int root = 0) {
    counts = counts_at("scatter_v", counts, share.size(), all.size(), root);
    world().scatter_v(all.data(), counts, share.data(), share.size(), kElementTypeOf<T>, root);
  }
  template <typename T, std::size_t N>
  Work scatter_v_async(std::type_identity_t<std::span<const T>> all, Counts counts,
                       std::span<T, N> share, int root = 0) {
    counts = counts_at("scatter_v", counts, share.size(), all.size(), root);
    return world().scatter_v_async(all.data(), counts, share.data(), share.size(),
                                   kElementTypeOf<T>, root);
  }
  // gives[p] elements for rank p, and gets[p] elements from rank p, which must pass the same
  // numbers.
  template <typename T, std::size_t N>
  void all_to_all_v(std::type_identity_t<std::span<const T>> in, Counts gives, std::span<T, N> out,
                    Counts gets) {
    check_both("all_to_all_v", in.size(), gives, out.size(), gets);
    world().all_to_all_v(in.data(), gives, out.data(), gets, kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_to_all_v_async(std::type_identity_t<std::span<const T>> in, Counts gives,
                          std::span<T, N> out, Counts gets) {
    check_both("all_to_all_v", in.size(), gives, out.size(), gets);
    return world().all_to_all_v_async(in.data(), gives, out.data(), gets, kElementTypeOf<T>);
  }

  template <typename T, std::size_t N>
  void send(std::span<T, N> data, int to) {
    world().send(data.data(), data.size(), kElementTypeOf<std::remove_const_t<T>>, to);
  }
  template <typename T, std::size_t N>
  Work send_async(std::span<T, N> data, int to) {
    return world().send_async(data.data(), data.size(), kElementTypeOf<std::remove_const_t<T>>, to);
  }
  template <typename T, std::size_t N>
  void receive(std::span<T, N> data, int from) {
    world().receive(data.data(), data.size(), kElementTypeOf<T>, from);
  }
  template <typename T, std::size_t N>
  Work receive_async(std::span<T, N> data, int from) {
    return world().receive_async(data.data(), data.size(), kElementTypeOf<T>, from);
  }
  template <typename T, std::size_t N>
  void send_receive(std::type_identity_t<std::span<const T>> sent, int to, std::span<T, N> received,
                    int from) {
    world().send_receive(sent.data(), sent.size(), to, received.data(), received.size(), from,
                         kElementTypeOf<T>);
  }

 private:
  friend World;
  SpanCalls() = default;

  World& world() { return static_cast<World&>(*this); }
  span_calls::Caller who(std::string_view call) { return {call, world().rank(), world().size()}; }

  void check_share(std::string_view call, Counts counts, std::size_t share, std::size_t all) {
    span_calls::check_sum(who(call), "counts", counts, all);
    span_calls::check_own(who(call), counts, share);
  }
  void check_both(std::string_view call, std::size_t in, Counts gives, std::size_t out,
                  Counts gets) {
    span_calls::check_sum(who(call), "gives", gives, in);
    span_calls::check_sum(who(call), "gets", gets, out);
  }
  // Checked lengths at the root; empty at other ranks, which do not know them.
  Counts counts_at(std::string_view call, Counts counts, std::size_t share, std::size_t all,
                   int root) {
    if (world().rank() != root) return {};
    check_share(call, counts, share, all);
    return counts;
  }
  std::vector<std::size_t> shares_at(std::string_view call, std::size_t chunk, std::size_t all,
                                     int root) {
    if (world().rank() != root) return {};
    span_calls::check_chunk(who(call), chunk, all);
    return span_calls::equal_shares(all, world().size());
  }
};

}  // namespace kolo

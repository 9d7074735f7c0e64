// Collectives over spans of floats, doubles, ...: what Communicator offers besides those over
// pointers, for equal shares and calls that need no options. What spans say twice is checked:
// std::invalid_argument, before anything is sent, where a chunk is not as long as the whole has it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "collectives/element.h"
#include "collectives/work.h"

namespace kolo {

namespace span_calls {

// std::invalid_argument unless `given` is what chunk_count() says of `all` elements.
void check_chunk(std::string_view call, std::size_t given, std::size_t all, int size, int rank);
void check_same_length(std::string_view call, std::size_t in, std::size_t out);

}  // namespace span_calls

// `World`: Communicator, which is one of these.
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
  // At the root `data` becomes the reduction; the others keep theirs.
  template <typename T, std::size_t N>
  void reduce(std::span<T, N> data, int root = 0, ReduceOp op = ReduceOp::kSum) {
    world().reduce(data.data(), world().rank() == root ? data.data() : nullptr, data.size(),
                   kElementTypeOf<T>, op, root);
  }

  // `all` is as long on every rank, and a chunk as long as chunk_count() of that says. T is found
  // by the second: all_gather(mine, std::span(all)).
  template <typename T, std::size_t N>
  void all_gather(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all) {
    check_chunk("all_gather", chunk.size(), all.size());
    world().all_gather(chunk.data(), all.data(), all.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_gather_async(std::type_identity_t<std::span<const T>> chunk, std::span<T, N> all) {
    check_chunk("all_gather", chunk.size(), all.size());
    return world().all_gather_async(chunk.data(), all.data(), all.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  void reduce_scatter(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk,
                      ReduceOp op = ReduceOp::kSum) {
    check_chunk("reduce_scatter", chunk.size(), all.size());
    world().reduce_scatter(all.data(), chunk.data(), all.size(), kElementTypeOf<T>, op);
  }
  template <typename T, std::size_t N>
  Work reduce_scatter_async(std::type_identity_t<std::span<const T>> all, std::span<T, N> chunk,
                            ReduceOp op = ReduceOp::kSum) {
    check_chunk("reduce_scatter", chunk.size(), all.size());
    return world().reduce_scatter_async(all.data(), chunk.data(), all.size(), kElementTypeOf<T>,
                                        op);
  }
  // A share for each rank, in a row: as many in as out.
  template <typename T, std::size_t N>
  void all_to_all(std::type_identity_t<std::span<const T>> in, std::span<T, N> out) {
    span_calls::check_same_length("all_to_all", in.size(), out.size());
    world().all_to_all(in.data(), out.data(), out.size(), kElementTypeOf<T>);
  }
  template <typename T, std::size_t N>
  Work all_to_all_async(std::type_identity_t<std::span<const T>> in, std::span<T, N> out) {
    span_calls::check_same_length("all_to_all", in.size(), out.size());
    return world().all_to_all_async(in.data(), out.data(), out.size(), kElementTypeOf<T>);
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

 private:
  friend World;
  SpanCalls() = default;

  World& world() { return static_cast<World&>(*this); }
  void check_chunk(std::string_view call, std::size_t given, std::size_t all) {
    span_calls::check_chunk(call, given, all, world().size(), world().rank());
  }
};

}  // namespace kolo

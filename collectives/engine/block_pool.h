// Memory for what comes and goes by the million a second: blocks of one size, kept by each thread
// for its next ones.
//
// A program with 64 messages in flight both ways has twice as many operations at a time as malloc
// has quick places for (7 of a size); beyond them it looks for neighbours to join a block with.
#pragma once

#include <cstddef>
#include <new>

namespace kolo {

// What one thread has given back last. Blocks of other threads are as good.
template <std::size_t kBytes>
class BlockPool {
 public:
  // std::bad_alloc.
  static void* take() {
    Kept& kept = kept_;
    if (kept.first == nullptr) return ::operator new(kBytes);
    Block* const block = kept.first;
    kept.first = block->next;
    --kept.count;
    return block;
  }

  static void give(void* memory) noexcept {
    Kept& kept = kept_;
    // Statics are destroyed after what belongs to their thread.
    if (kept.is_over || kept.count == kMost) return ::operator delete(memory);
    kept.first = ::new (memory) Block{kept.first};
    ++kept.count;
    static thread_local const Keeper keeper;
    static_cast<void>(keeper);
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t kMost = 0;  // so that it sees who uses what was given back
#else
  static constexpr std::size_t kMost = 256;
#endif

  struct Block {
    Block* next;
  };
  static_assert(kBytes >= sizeof(Block));

  struct Kept {
    Block* first;
    std::size_t count;
    bool is_over;
  };

  // Gives a thread's blocks back at its end.
  struct Keeper {
    Keeper() = default;
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
    ~Keeper() {
      kept_.is_over = true;
      while (kept_.first != nullptr) ::operator delete(take());
    }
  };

  static inline thread_local constinit Kept kept_{};
};

// An allocator for std::allocate_shared.
template <typename T>
class PooledAllocator {
 public:
  using value_type = T;

  PooledAllocator() = default;
  template <typename U>
  explicit(false) PooledAllocator(const PooledAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if (count != 1) throw std::bad_alloc();
    return static_cast<T*>(BlockPool<sizeof(T)>::take());
  }
  void deallocate(T* memory, std::size_t) noexcept { BlockPool<sizeof(T)>::give(memory); }

  friend bool operator==(const PooledAllocator&, const PooledAllocator&) { return true; }
};

}  // namespace kolo

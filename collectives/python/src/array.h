// Memory of a Python array, as the argument of a call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <optional>
#include <string>

#include "collectives/buffer.h"
#include "collectives/user_reduce_op.h"

namespace kolo::python {

namespace nb = nanobind;

enum class Access { kRead, kWrite };

// A number of elements without memory, for ranks that only state a count (buffer.h).
struct Count {
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
};

// Borrows the memory of an object with the buffer protocol (NumPy, bytearray) or with DLPack
// (torch), and keeps it alive. The object may also be a Count, or None for an empty buffer. All
// functions and the destructor need the GIL, except buffer() and const_buffer().
class Array {
 public:
  Array() = default;
  // `name`: of the argument, for messages. TypeError: no array, memory of a device, or an element
  // type that kolo lacks. ValueError: not contiguous, or read-only where it would be written.
  Array(nb::handle object, Access access, const char* name);
  Array(Array&& other) noexcept;
  Array& operator=(Array&& other) noexcept;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  // Takes the elements as those of `op`. std::invalid_argument: the length is no multiple of them.
  void set_user_elements(const UserReduceOp& op);

  // Of an array in whose place `like` counts: its count and type without memory.
  static Array without_memory(const Array& like);

  Buffer buffer() const;
  ConstBuffer const_buffer() const { return buffer(); }
  bool is_bool() const { return is_bool_; }
  bool is_empty() const { return data_ == nullptr && count_ == 0; }

 private:
  void take_buffer(nb::handle object, Access access, const char* name);
  void take_tensor(nb::handle object, Access access, const char* name);
  // By the name of the dtype, where neither protocol can express it: ml_dtypes, some torch types.
  bool take_view(nb::handle object, Access access, const char* name);

  void* data_ = nullptr;
  std::size_t count_ = 0;
  std::size_t item_bytes_ = 0;
  std::optional<ElementType> type_;  // nothing: only a UserReduceOp takes the elements
  std::string type_name_;            // for messages, if type_ has no value
  std::uint32_t user_bytes_ = 0;     // above 0: elements of a UserReduceOp
  bool is_bool_ = false;

  bool has_view_ = false;
  Py_buffer view_{};
  nb::ndarray<nb::ro> tensor_;
  nb::object owner_;
};

// The type of that name: "float32". std::invalid_argument lists the possible ones.
ElementType element_type(const std::string& name);

// The elements as a memoryview with their type, for callbacks; narrow floats appear as uint16 and
// uint8. Valid during the callback only.
nb::object memoryview_of(void* data, std::size_t count, ElementType type, bool is_writable);

}  // namespace kolo::python

#include "collectives/python/src/array.h"

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "collectives/element.h"

namespace kolo::python {

namespace {

[[noreturn]] void refuse_type(const char* name, const std::string& text) {
  throw nb::type_error((std::string(name) + ": " + text).c_str());
}

[[noreturn]] void refuse_value(const char* name, const std::string& text) {
  throw nb::value_error((std::string(name) + ": " + text).c_str());
}

std::optional<ElementType> type_of(char kind, std::size_t bytes) {
  for (const ElementType type : kElementTypes) {
    if (element_bytes(type) != bytes) continue;
    const std::string_view text = to_string(type);
    if (kind == 'f' && bytes > 1 && is_float(type) && type != ElementType::kBFloat16) return type;
    if (kind == 'i' && text.starts_with("int")) return type;
    if (kind == 'u' && text.starts_with("uint")) return type;
  }
  return std::nullopt;
}

bool is_one_of(std::string_view characters, char wanted) {
  return characters.find(wanted) != characters.npos;
}

// Type of a buffer's elements by its format, in the language of Python's module struct.
std::optional<ElementType> type_of_format(std::string_view format, std::size_t bytes) {
  if (format.empty()) return ElementType::kUint8;
  if (format.front() == '@' || format.front() == '=' || format.front() == '<') {
    format.remove_prefix(1);
  } else if (format.front() == '>' || format.front() == '!') {
    format.remove_prefix(1);
    if (bytes > 1) return std::nullopt;  // of the other byte order
  }
  if (format.size() != 1) return std::nullopt;
  if (is_one_of("efd", format.front())) return type_of('f', bytes);
  if (is_one_of("bhilqn", format.front())) return type_of('i', bytes);
  if (is_one_of("?BcHILQN", format.front())) return type_of('u', bytes);
  return std::nullopt;
}

std::optional<ElementType> type_of_tensor(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1 || type.bits % 8 != 0) return std::nullopt;
  const std::size_t bytes = type.bits / 8;
  switch (static_cast<Code>(type.code)) {
    case Code::Int:
      return type_of('i', bytes);
    case Code::UInt:
    case Code::Bool:
      return type_of('u', bytes);
    case Code::Float:
      return type_of('f', bytes);
    case Code::Bfloat:
      return bytes == 2 ? std::optional(ElementType::kBFloat16) : std::nullopt;
    case Code::Float8_E4M3FN:
      return ElementType::kFloat8E4M3;
    case Code::Float8_E5M2:
      return ElementType::kFloat8E5M2;
    default:
      return std::nullopt;
  }
}

// Devices of DLPack whose memory the host can reach: the CPU, and pinned memory of CUDA and ROCm.
constexpr bool is_of_host(int device_type) {
  return device_type == 1 || device_type == 3 || device_type == 11;
}

std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

std::string name_of_type(nb::handle object) {
  return nb::hasattr(object, "dtype") ? text_of(object.attr("dtype")) : std::string("unknown");
}

constexpr const char* kNotContiguous =
    "it is not contiguous (in C order); pass numpy.ascontiguousarray(x) or x.contiguous()";
constexpr const char* kReadOnly = "it is read-only, but the call writes it";

}  // namespace

Array::Array(nb::handle object, Access access, const char* name) {
  if (object.is_none()) return;
  if (nb::isinstance<Count>(object)) {
    const Count& given = nb::cast<const Count&>(object);
    count_ = given.count;
    type_ = given.type;
    item_bytes_ = element_bytes(given.type);
    return;
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    take_buffer(object, access, name);
  } else {
    take_tensor(object, access, name);
  }
}

void Array::take_buffer(nb::handle object, Access access, const char* name) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    const nb::python_error error;  // takes Python's exception
    if (take_view(object, access, name)) return;
    refuse_type(name, "elements of type " + name_of_type(object) + " are not supported (" +
                          error.what() + ")");
  }
  has_view_ = true;
  if (access == Access::kWrite && view_.readonly != 0) refuse_value(name, kReadOnly);
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) refuse_value(name, kNotContiguous);
  const std::string_view format = view_.format == nullptr ? "B" : view_.format;
  data_ = view_.buf;
  item_bytes_ = static_cast<std::size_t>(view_.itemsize);
  count_ = item_bytes_ == 0 ? 0 : static_cast<std::size_t>(view_.len) / item_bytes_;
  type_ = type_of_format(format, item_bytes_);
  is_bool_ = format.ends_with('?');
  if (!type_) type_name_ = nb::hasattr(object, "dtype") ? name_of_type(object) : format;
}

void Array::take_tensor(nb::handle object, Access access, const char* name) {
  if (!nb::hasattr(object, "__dlpack__")) {
    refuse_type(name, std::string("expected an array (with the buffer protocol or DLPack), not ") +
                          text_of(object.type().attr("__name__")));
  }
  bool is_taken = false;
  if (access == Access::kRead) {
    is_taken = nb::try_cast(object, tensor_, false);
  } else if (nb::ndarray<> writable; nb::try_cast(object, writable, false)) {
    tensor_ = nb::ndarray<nb::ro>(writable);
    is_taken = true;
  }
  if (!is_taken) {
    if (take_view(object, access, name)) return;
    object.attr("__dlpack__")();  // throws the exporter's reason, such as "use tensor.detach()"
    refuse_value(name, access == Access::kWrite ? kReadOnly : "the tensor cannot be read");
  }
  if (!is_of_host(tensor_.device_type())) {
    const std::string device =
        nb::hasattr(object, "device") ? text_of(object.attr("device")) : std::string("a device");
    refuse_type(name, "the tensor is in memory of " + device +
                          "; kolo's Python package takes memory of the host: pass x.cpu()");
  }
  const auto type = tensor_.dtype();
  count_ = 1;
  for (std::size_t i = tensor_.ndim(); i-- > 0;) {
    if (tensor_.shape(i) > 1 && tensor_.stride(i) != static_cast<std::int64_t>(count_) &&
        tensor_.size() > 0) {
      refuse_value(name, kNotContiguous);
    }
    count_ *= tensor_.shape(i);
  }
  data_ = const_cast<void*>(static_cast<const void*>(tensor_.data()));
  item_bytes_ = std::size_t{type.bits} * type.lanes / 8;
  type_ = type_of_tensor(type);
  is_bool_ = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool);
  if (!type_) type_name_ = name_of_type(object);
}

bool Array::take_view(nb::handle object, Access access, const char* name) {
  static constexpr std::array<std::pair<std::string_view, ElementType>, 3> kByName{{
      {"bfloat16", ElementType::kBFloat16},
      {"float8_e4m3fn", ElementType::kFloat8E4M3},
      {"float8_e5m2", ElementType::kFloat8E5M2},
  }};
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view")) return false;
  const std::string whole = text_of(object.attr("dtype"));
  const std::string_view text = std::string_view(whole).substr(whole.rfind('.') + 1);
  for (const auto& [type_name, type] : kByName) {
    if (text != type_name) continue;
    const bool is_of_torch = whole.starts_with("torch.");
    const char* bits = element_bytes(type) == 1 ? "uint8" : is_of_torch ? "int16" : "uint16";
    const auto module = nb::module_::import_(is_of_torch ? "torch" : "numpy");
    const nb::object view = object.attr("view")(module.attr(bits));
    *this = Array(view, access, name);
    type_ = type;
    owner_ = view;
    return true;
  }
  return false;
}

Array::Array(Array&& other) noexcept { *this = std::move(other); }

Array& Array::operator=(Array&& other) noexcept {
  if (this == &other) return *this;
  if (has_view_) PyBuffer_Release(&view_);
  data_ = std::exchange(other.data_, nullptr);
  count_ = std::exchange(other.count_, 0);
  item_bytes_ = other.item_bytes_;
  type_ = other.type_;
  type_name_ = std::move(other.type_name_);
  user_bytes_ = other.user_bytes_;
  is_bool_ = other.is_bool_;
  has_view_ = std::exchange(other.has_view_, false);
  view_ = other.view_;
  tensor_ = std::move(other.tensor_);
  owner_ = std::move(other.owner_);
  return *this;
}

Array::~Array() {
  if (has_view_) PyBuffer_Release(&view_);
}

void Array::set_user_elements(const UserReduceOp& op) {
  const std::size_t bytes = count_ * item_bytes_;
  if (bytes % op.element_bytes != 0) {
    throw std::invalid_argument("an array of " + std::to_string(bytes) +
                                " bytes has no whole number of the operation's elements of " +
                                std::to_string(op.element_bytes) + " bytes");
  }
  count_ = bytes / op.element_bytes;
  user_bytes_ = static_cast<std::uint32_t>(op.element_bytes);
}

Array Array::without_memory(const Array& like) {
  Array made;
  made.count_ = like.count_;
  made.item_bytes_ = like.item_bytes_;
  made.type_ = like.type_;
  made.type_name_ = like.type_name_;
  made.user_bytes_ = like.user_bytes_;
  return made;
}

Buffer Array::buffer() const {
  if (user_bytes_ > 0) {
    Buffer made(data_, count_, kUserElement);
    made.user_bytes = user_bytes_;
    return made;
  }
  if (type_) return {data_, count_, *type_};
  if (is_empty()) return {};
  throw nb::type_error(("elements of type " + type_name_ +
                        " are not supported; pass a view of another type, such as x.view('uint8')")
                           .c_str());
}

ElementType element_type(const std::string& name) {
  std::string names;
  for (const ElementType type : kElementTypes) {
    if (to_string(type) == name) return type;
    names += (names.empty() ? "" : ", ") + std::string(to_string(type));
  }
  throw std::invalid_argument("unknown element type '" + name + "'; expected one of " + names);
}

nb::object memoryview_of(void* data, std::size_t count, ElementType type, bool is_writable) {
  static constexpr std::array<std::pair<ElementType, const char*>, 14> kFormats{{
      {ElementType::kFloat32, "f"},
      {ElementType::kFloat64, "d"},
      {ElementType::kBFloat16, "H"},
      {ElementType::kInt32, "i"},
      {ElementType::kInt64, "q"},
      {ElementType::kFloat16, "e"},
      {ElementType::kFloat8E4M3, "B"},
      {ElementType::kFloat8E5M2, "B"},
      {ElementType::kInt8, "b"},
      {ElementType::kInt16, "h"},
      {ElementType::kUint8, "B"},
      {ElementType::kUint16, "H"},
      {ElementType::kUint32, "I"},
      {ElementType::kUint64, "Q"},
  }};
  const auto bytes = static_cast<Py_ssize_t>(count * element_bytes(type));
  const nb::object plain = nb::steal(PyMemoryView_FromMemory(
      static_cast<char*>(data), bytes, is_writable ? PyBUF_WRITE : PyBUF_READ));
  if (!plain.is_valid()) throw nb::python_error();
  for (const auto& [known, format] : kFormats) {
    if (known == type && std::string_view(format) != "B") return plain.attr("cast")(format);
  }
  return plain;
}

}  // namespace kolo::python

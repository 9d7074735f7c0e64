// fmt's code, compiled once for all libraries of this project: what its own src/format.cc does, in
// the namespace that kolo_formatting's definitions give it (KoloFormatting.cmake).
#include <fmt/format-inl.h>

// What its headers want to find instantiated. (The same for wchar_t is used nowhere.)
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE

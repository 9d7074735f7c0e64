// The code of fmt, compiled once for all libraries of this project. It does what fmt's own
// src/format.cc does, in the namespace that kolo_formatting defines (KoloFormatting.cmake).
#include <fmt/format-inl.h>

// Explicit instantiations that fmt's headers expect. (Those for wchar_t are not used.)
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE

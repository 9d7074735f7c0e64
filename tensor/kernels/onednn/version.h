#pragma once

// The differences between oneDNN 2 (Debian 12) and 3 (Debian 13, Ubuntu 24.04). In version 2 a
// primitive descriptor is created from an operation descriptor; in version 3 it is created
// directly. No other file depends on the version.

#include <oneapi/dnnl/dnnl.hpp>

namespace kolo::tensor::onednn {

// The parameters that all three passes of a convolution share. The format of weights may be `any`.
struct ConvolutionDescription {
  dnnl::memory::desc x, weight, y;
  dnnl::memory::dims strides, padding;
};

// A sum: c = a b, or c += a b.
inline dnnl::primitive_attr sum_attributes(bool accumulates) {
  dnnl::primitive_attr attributes;
  if (!accumulates) return attributes;
  dnnl::post_ops after;
  after.append_sum(1.0F);
  attributes.set_post_ops(after);
  return attributes;
}

#if DNNL_VERSION_MAJOR < 3

inline dnnl::matmul::primitive_desc matmul_description(const dnnl::engine& engine,
                                                       const dnnl::memory::desc& a,
                                                       const dnnl::memory::desc& b,
                                                       const dnnl::memory::desc& c,
                                                       bool accumulates) {
  return {{a, b, c}, sum_attributes(accumulates), engine};
}

inline dnnl::convolution_forward::primitive_desc forward_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr) {
  return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, d.x, d.weight,
           d.y, d.strides, d.padding, d.padding},
          attr,
          engine};
}

inline dnnl::convolution_backward_data::primitive_desc backward_data_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {
      {dnnl::algorithm::convolution_direct, d.x, d.weight, d.y, d.strides, d.padding, d.padding},
      attr,
      engine,
      forward};
}

inline dnnl::convolution_backward_weights::primitive_desc backward_weights_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {
      {dnnl::algorithm::convolution_direct, d.x, d.weight, d.y, d.strides, d.padding, d.padding},
      attr,
      engine,
      forward};
}

#else

inline dnnl::matmul::primitive_desc matmul_description(const dnnl::engine& engine,
                                                       const dnnl::memory::desc& a,
                                                       const dnnl::memory::desc& b,
                                                       const dnnl::memory::desc& c,
                                                       bool accumulates) {
  return {engine, a, b, c, sum_attributes(accumulates)};
}

inline dnnl::convolution_forward::primitive_desc forward_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr) {
  return {engine,
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          d.x,
          d.weight,
          d.y,
          d.strides,
          d.padding,
          d.padding,
          attr};
}

inline dnnl::convolution_backward_data::primitive_desc backward_data_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine,    dnnl::algorithm::convolution_direct,
          d.x,       d.weight,
          d.y,       d.strides,
          d.padding, d.padding,
          forward,   attr};
}

inline dnnl::convolution_backward_weights::primitive_desc backward_weights_description(
    const dnnl::engine& engine, const ConvolutionDescription& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine,    dnnl::algorithm::convolution_direct,
          d.x,       d.weight,
          d.y,       d.strides,
          d.padding, d.padding,
          forward,   attr};
}

#endif

}  // namespace kolo::tensor::onednn

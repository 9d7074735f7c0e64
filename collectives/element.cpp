#include "collectives/element.h"

#include "collectives/reduce/conversions.inc"
#include "collectives/reduce/kernels.h"

namespace kolo::inline v0 {

std::string_view to_string(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kFloat8E4M3:
      return "float8_e4m3";
    case ElementType::kFloat8E5M2:
      return "float8_e5m2";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kUint16:
      return "uint16";
    case ElementType::kUint32:
      return "uint32";
    case ElementType::kUint64:
      return "uint64";
  }
  return "unknown type";
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kBitAnd:
      return "bit_and";
    case ReduceOp::kBitOr:
      return "bit_or";
    case ReduceOp::kBitXor:
      return "bit_xor";
    case ReduceOp::kScaledSum:
      return "scaled_sum";
    case ReduceOp::kUser:
      return "user function";
  }
  return "unknown operation";
}

BFloat16 to_bfloat16(float value) { return {narrow<BFloat16>(value)}; }
float to_float(BFloat16 value) { return widen<BFloat16>(value.bits); }

Float16 to_float16(float value) { return {narrow<Float16>(value)}; }
float to_float(Float16 value) { return widen<Float16>(value.bits); }

Float8E4M3 to_float8_e4m3(float value) { return {narrow<Float8E4M3>(value)}; }
float to_float(Float8E4M3 value) { return widen<Float8E4M3>(value.bits); }

Float8E5M2 to_float8_e5m2(float value) { return {narrow<Float8E5M2>(value)}; }
float to_float(Float8E5M2 value) { return widen<Float8E5M2>(value.bits); }

ReduceKernel reduce_kernel(ElementType type, ReduceOp op) {
  return reduce::best().reduce(type, op);
}

ScaleKernel scale_kernel(ElementType type) { return reduce::best().scale(type); }

MultiplyKernel multiply_kernel(ElementType type) { return reduce::best().multiply(type); }

ConvertKernel narrow_kernel(ElementType to) { return reduce::best().narrow(to); }

ConvertKernel widen_kernel(ElementType from) { return reduce::best().widen(from); }

}  // namespace kolo::inline v0

#include "test/collectives/support/fake_device_math.h"

#include <cstring>
#include <vector>

#include "transports/error.h"

namespace kolo::test {

namespace {

std::string name_of(ElementType type) { return "kernels of " + std::string(to_string(type)); }

}  // namespace

FakeDeviceMath::FakeDeviceMath(FakeMachine& machine, std::shared_ptr<FakeDriver> driver)
    : machine_(machine), driver_(std::move(driver)) {
  for (const ElementType type : kElementTypes) driver_->load_kernel(name_of(type));
  for (const char* const copy : {"device to device", "host to device", "device to host"})
    driver_->load_kernel(std::string("copy from ") + copy);
}

void FakeDeviceMath::begin(const std::string& function) {
  const int code = driver_->call_other(function);
  if (code == 0) return;
  throw Error(ErrorCode::kSystem, kNoPeer,
              function + " on device 0 (Played 0): the driver's error " + std::to_string(code));
}

void FakeDeviceMath::copy(void* to, const void* from, std::size_t bytes, void* stream) {
  begin("cudaMemcpyAsync");
  driver_->count_moved({bytes, bytes});
  driver_->launch(stream, {{to, bytes}, {from, bytes}},
                  [bytes](const auto& operands) { std::memmove(operands[0], operands[1], bytes); });
}

void FakeDeviceMath::reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
                            void* stream) {
  begin("cudaLaunchKernel");
  driver_->load_kernel(name_of(type));
  const std::size_t bytes = pass.count * element_bytes(type);
  driver_->count_moved({2 * bytes, bytes * (pass.copy == nullptr ? 1 : 2)});
  driver_->launch(stream,
                  {{pass.out, bytes}, {pass.copy, bytes}, {pass.left, bytes}, {pass.right, bytes}},
                  [=, count = pass.count](const auto& operands) {
                    std::vector<std::byte> scaled;
                    const std::byte* left = operands[2];
                    if (scaling.factor != 1) {
                      scaled.resize(bytes);
                      multiply_kernel(type)(scaled.data(), left, count, scaling.factor);
                      left = scaled.data();
                    }
                    reduce_kernel(type, op)(operands[0], operands[1], left, operands[3], count,
                                            scaling.divisor);
                  });
}

void FakeDeviceMath::multiply(ElementType type, const Pass& pass, double factor, void* stream) {
  begin("cudaLaunchKernel");
  driver_->load_kernel(name_of(type));
  const std::size_t bytes = pass.count * element_bytes(type);
  driver_->count_moved({bytes, bytes});
  driver_->launch(stream, {{pass.out, bytes}, {pass.left, bytes}},
                  [=, count = pass.count](const auto& operands) {
                    multiply_kernel(type)(operands[0], operands[1], count, factor);
                  });
}

std::byte* FakeDeviceMath::allocate(std::size_t bytes) {
  driver_->require_beside_capture("cudaMalloc");
  begin("cudaMalloc");
  driver_->wait_to_allocate("cudaMalloc");
  return driver_->make_memory(bytes, FakeDriver::Kind::kDevice);
}

void FakeDeviceMath::free(std::byte* memory) noexcept {
  machine_.run();
  driver_->free(reinterpret_cast<cuda::Address>(memory));
}

}  // namespace kolo::test

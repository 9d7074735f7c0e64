#include "transports/ucx/worker.h"

#include <fmt/format.h>
#include <utility>

#include "transports/error.h"
#include "transports/ucx/open_worker.h"
#include "transports/ucx/printed_text.h"

namespace kolo::inline v0::ucx {

namespace {

void require(const Library& ucp, ucs_status_t status, const char* function,
             ErrorCode code = ErrorCode::kSystem) {
  if (status == UCS_OK) return;
  throw Error(code, kNoPeer, fmt::format("{}: {}", function, text_of(ucp, status)));
}

}  // namespace

std::string text_of(const Library& ucp, ucs_status_t status) { return ucp.status_string(status); }

Worker::Worker(const Library& ucp, int size) : ucp_(ucp) {
  try {
    const Opened opened = open_worker(ucp_, size);
    context_ = opened.context;
    worker_ = opened.worker;
    require(ucp_, ucp_.worker_get_efd(worker_, &descriptor_), "ucp_worker_get_efd",
            ErrorCode::kUnavailable);
  } catch (...) {
    close();
    throw;
  }
}

Worker::~Worker() { close(); }

void Worker::close(Requests requests) noexcept {
  if (worker_ != nullptr) ucp_.worker_destroy(worker_);
  if (context_ != nullptr && requests == Requests::kNone) ucp_.cleanup(context_);
  worker_ = nullptr;
  context_ = nullptr;
}

void Worker::abandon() noexcept {
  worker_ = nullptr;
  context_ = nullptr;
}

void Worker::let(Kind kind, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = static_cast<unsigned>(kind);
  param.cb = callback;
  param.arg = argument;
  require(ucp_, ucp_.worker_set_am_recv_handler(worker_, &param), "ucp_worker_set_am_recv_handler");
}

std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  require(ucp_, ucp_.worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_.worker_release_address(worker_, address);
  return bytes;
}

ucp_ep_h Worker::connect(const std::string& address, Failures failures,
                         ucp_err_handler_cb_t callback, void* argument) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode =
      failures == Failures::kAreToldByUcx ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = callback;
  params.err_handler.arg = argument;
  ucp_ep_h endpoint = nullptr;
  require(ucp_, ucp_.ep_create(worker_, &params, &endpoint), "ucp_ep_create",
          ErrorCode::kUnavailable);
  return endpoint;
}

std::string Worker::describe(ucp_ep_h endpoint) const {
  return text_printed_by([&](FILE* stream) { ucp_.ep_print_info(endpoint, stream); });
}

std::string Worker::describe_resources() const { return resources_of(ucp_, context_); }

// A flush of a single endpoint does not work: over TCP it is a message that the peer has to answer.
bool Worker::has_all_left() {
  if (is_flushing_) return false;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = [](void* request, ucs_status_t, void* worker) {
    auto& self = *static_cast<Worker*>(worker);
    self.is_flushing_ = false;
    self.note_news();
    self.ucp_.request_free(request);
  };
  param.user_data = this;
  void* const request = ucp_.worker_flush_nbx(worker_, &param);
  is_flushing_ = UCS_PTR_IS_PTR(request);
  return request == nullptr;
}

bool Worker::arm() {
  if (std::exchange(has_news_, false)) return false;
  const auto status = ucp_.worker_arm(worker_);
  if (status == UCS_ERR_BUSY) return false;
  require(ucp_, status, "ucp_worker_arm");
  return true;
}

}  // namespace kolo::inline v0::ucx

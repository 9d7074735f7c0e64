#include "transports/ucx/worker.h"

#include <fmt/format.h>
#include <cstdio>
#include <cstdlib>

#include "transports/error.h"
#include "transports/transport.h"
#include "transports/ucx/carriers.h"
#include "transports/ucx/pieces.h"

namespace kolo::ucx {

namespace {

void require(const Library& ucp, ucs_status_t status, const char* function,
             ErrorCode code = ErrorCode::kSystem) {
  if (status == UCS_OK) return;
  throw Error(code, kNoPeer, fmt::format("{}: {}", function, text_of(ucp, status)));
}

template <typename Print>
std::string printed_by(const Print& print) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = ::open_memstream(&text, &length);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string printed(text == nullptr ? "" : text, text == nullptr ? 0 : length);
  std::free(text);
  return printed;
}

std::string resources_of(const Library& ucp, ucp_context_h context) {
  return printed_by([&](FILE* stream) { ucp.context_print_info(context, stream); });
}

ucp_context_h make_context(const Library& ucp, int size) {
  // Holds what the user's UCX_* variables say.
  ucp_config_t* config = nullptr;
  if (const auto status = ucp.config_read(nullptr, nullptr, &config); status != UCS_OK) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("UCX cannot read its settings ({}): see what it says above, and the "
                            "UCX_* variables",
                            text_of(ucp, status)));
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(size);
  ucp_context_h context = nullptr;
  const auto init = [&] {
    return ucp.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  };
  auto status = init();
  if (status == UCS_OK && set_pieces(ucp, config, resources_in(resources_of(ucp, context)))) {
    ucp.cleanup(context);
    status = init();
  }
  ucp.config_release(config);
  if (status == UCS_OK) return context;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("UCX has nothing to run on ({}): see what UCX_TLS and UCX_NET_DEVICES "
                          "say, and what ucx_info -d lists",
                          text_of(ucp, status)));
}

}  // namespace

std::string text_of(const Library& ucp, ucs_status_t status) { return ucp.status_string(status); }

Worker::Worker(const Library& ucp, int size) : ucp_(ucp) {
  try {
    context_ = make_context(ucp_, size);
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS |
                        UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    // Who is closed with sends under way means it.
    params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
    params.am_alignment = kSegmentAlignment;
    if (const auto status = ucp_.worker_create(context_, &params, &worker_); status != UCS_OK) {
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  fmt::format("UCX cannot open what it would run on ({}): see what it says above; "
                              "room in /dev/shm may be short, or locked memory (ulimit -l), and "
                              "UCX_TLS=tcp does without both",
                              text_of(ucp, status)));
    }
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
  return printed_by([&](FILE* stream) { ucp_.ep_print_info(endpoint, stream); });
}

std::string Worker::describe_resources() const { return resources_of(ucp_, context_); }

bool Worker::arm() {
  const auto status = ucp_.worker_arm(worker_);
  if (status == UCS_ERR_BUSY) return false;
  require(ucp_, status, "ucp_worker_arm");
  return true;
}

}  // namespace kolo::ucx

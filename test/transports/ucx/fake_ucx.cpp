#include "test/transports/ucx/fake_ucx.h"

namespace kolo::test {

namespace {

// Any non-null pointer serves as a handle.
int kHandle = 0;
template <typename Handle>
Handle handle() {
  return reinterpret_cast<Handle>(&kHandle);
}

std::vector<std::byte> bytes_at(const void* from, std::size_t length) {
  const auto* const first = static_cast<const std::byte*>(from);
  return length == 0 ? std::vector<std::byte>() : std::vector<std::byte>(first, first + length);
}

ucs_status_ptr_t send(ucp_ep_h, unsigned id, const void* header, std::size_t header_length,
                      const void* buffer, std::size_t count, const ucp_request_param_t* param) {
  played().sent.push_back(
      {id, bytes_at(header, header_length), bytes_at(buffer, count), param->cb.send,
       param->user_data, (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 ? param->flags : 0});
  return played().completes_at_once ? nullptr : handle<void*>();
}

ucs_status_ptr_t fetch(ucp_worker_h, void* offer, void* buffer, std::size_t count,
                       const ucp_request_param_t* param) {
  played().fetches.push_back(
      {offer, static_cast<std::byte*>(buffer), count, param->cb.recv_am, param->user_data});
  return handle<void*>();
}

ucs_status_ptr_t flush(ucp_worker_h, const ucp_request_param_t* param) {
  played().flushes.push_back({param->cb.send, param->user_data});
  return played().keeps_sent ? handle<void*>() : nullptr;
}

ucx::Library make_library() {
  ucx::Library library{};
  library.config_read = [](const char*, const char*, ucp_config_t** config) {
    *config = handle<ucp_config_t*>();
    return UCS_OK;
  };
  library.config_modify = [](ucp_config_t*, const char* name, const char* value) {
    played().settings[name] = value;
    return UCS_OK;
  };
  library.config_release = [](ucp_config_t*) {};
  library.init_version = [](unsigned, unsigned, const ucp_params_t*, const ucp_config_t*,
                            ucp_context_h* context) {
    *context = handle<ucp_context_h>();
    return UCS_OK;
  };
  library.cleanup = [](ucp_context_h) {};
  library.worker_create = [](ucp_context_h, const ucp_worker_params_t*, ucp_worker_h* worker) {
    *worker = handle<ucp_worker_h>();
    return UCS_OK;
  };
  library.worker_destroy = [](ucp_worker_h) {};
  library.worker_get_efd = [](ucp_worker_h, int* descriptor) {
    *descriptor = -1;
    return UCS_OK;
  };
  library.worker_arm = [](ucp_worker_h) { return UCS_OK; };
  library.worker_flush_nbx = flush;
  library.worker_progress = [](ucp_worker_h) { return played().happens; };
  library.ep_create = [](ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h* endpoint) {
    *endpoint = handle<ucp_ep_h>();
    return UCS_OK;
  };
  library.ep_flush_nbx = [](ucp_ep_h, const ucp_request_param_t*) -> ucs_status_ptr_t {
    return nullptr;
  };
  library.context_print_info = [](const ucp_context_h, FILE*) {};
  library.ep_print_info = [](ucp_ep_h, FILE* stream) {
    std::fputs(played().carriers.c_str(), stream);
  };
  library.am_send_nbx = send;
  library.am_recv_data_nbx = fetch;
  library.am_data_release = [](ucp_worker_h, void* data) { played().released.push_back(data); };
  library.request_free = [](void*) {};
  library.status_string = [](ucs_status_t) { return "a status"; };
  return library;
}

}  // namespace

FakeUcx& played() {
  static FakeUcx ucx;
  return ucx;
}

const ucx::Library& fake_library() {
  static const ucx::Library library = make_library();
  played() = {};
  return library;
}

}  // namespace kolo::test

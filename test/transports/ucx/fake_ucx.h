// Fake UCX under the test's control: it records every call and sends nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transports/ucx/library.h"

namespace kolo::test {

struct FakeUcx {
  struct Sent {
    unsigned id = 0;
    std::vector<std::byte> header;
    std::vector<std::byte> data;
    ucp_send_nbx_callback_t callback = nullptr;
    void* user_data = nullptr;
    std::uint32_t flags = 0;
  };
  struct Fetch {
    void* offer = nullptr;
    std::byte* into = nullptr;
    std::size_t bytes = 0;
    ucp_am_recv_data_nbx_callback_t callback = nullptr;
    void* user_data = nullptr;
  };
  struct Flush {
    ucp_send_nbx_callback_t callback = nullptr;
    void* user_data = nullptr;
  };
  std::vector<Sent> sent;
  std::vector<Fetch> fetches;
  std::vector<void*> released;
  std::vector<Flush> flushes;  // of the whole worker
  std::map<std::string, std::string> settings;
  unsigned happens = 0;           // result of a progress call
  bool completes_at_once = true;  // whether sends complete at once
  bool keeps_sent = false;        // whether it still holds data that counts as sent
  std::string carriers;           // the text that ucp_ep_print_info prints
};

// The fake that the functions of fake_library() record into.
FakeUcx& played();

// A library of these functions; resets played().
const ucx::Library& fake_library();

}  // namespace kolo::test

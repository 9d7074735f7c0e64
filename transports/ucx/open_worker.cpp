#include "transports/ucx/open_worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <csignal>
#include <ctime>
#include <memory>
#include <set>

#include "transports/error.h"
#include "transports/settings.h"
#include "transports/transport.h"
#include "transports/ucx/buffer_sizes.h"
#include "transports/ucx/endpoint_transports.h"
#include "transports/ucx/printed_text.h"
#include "transports/ucx/worker.h"

namespace kolo::inline v0::ucx {

namespace {

// Values of UCX_TLS to try, in order, if the user sets none. UCX gives up altogether if a shared
// memory queue cannot be opened: no room, a limit on file sizes, or a container that forbids it.
// Null: UCX's default.
constexpr const char* kGoesWithout[] = {nullptr, "^sysv", "^posix", "^posix,sysv"};

using Config = std::unique_ptr<ucp_config_t, decltype(&::ucp_config_release)>;

// Reads the user's UCX_* variables.
Config read_config(const Library& ucp) {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp.config_read(nullptr, nullptr, &config); status != UCS_OK) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("UCX cannot read its settings ({}): see its message above, and the "
                            "UCX_* variables",
                            text_of(ucp, status)));
  }
  return {config, ucp.config_release};
}

ucs_status_t init(const Library& ucp, const ucp_config_t* config, int size,
                  ucp_context_h& context) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(size);
  return ucp.init_version(kOldestMajor, kOldestMinor, &params, config, &context);
}

ucs_status_t open_context(const Library& ucp, int size, const char* ways, ucp_context_h& context) {
  const Config config = read_config(ucp);
  if (ways != nullptr) ucp.config_modify(config.get(), "TLS", ways);
  if (!is_in_environment("UCX_FLUSH_WORKER_EPS"))
    ucp.config_modify(config.get(), "FLUSH_WORKER_EPS", "n");
  const auto status = init(ucp, config.get(), size, context);
  if (status != UCS_OK) return status;
  if (!set_buffer_sizes(ucp, config.get(), resources_in(resources_of(ucp, context)))) return status;
  ucp.cleanup(context);
  return init(ucp, config.get(), size, context);
}

// Turns SIGXFSZ into an error for this thread while the object lives. A queue in shared memory is a
// file, and a write beyond the limit on file sizes raises that signal, which ends the process.
class LongFilesAreErrors {
 public:
  LongFilesAreErrors() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    was_pending_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~LongFilesAreErrors() {
    const timespec none{};
    if (has_met_limit()) sigtimedwait(&signal_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  LongFilesAreErrors(const LongFilesAreErrors&) = delete;
  LongFilesAreErrors& operator=(const LongFilesAreErrors&) = delete;

  bool has_met_limit() const { return !was_pending_ && is_pending(); }

 private:
  static bool is_pending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
};

ucs_status_t open_worker_in(const Library& ucp, ucp_context_h context, ucp_worker_h& worker) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS |
                      UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  // A close with sends under way is intended.
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  params.am_alignment = kSegmentAlignment;
  return ucp.worker_create(context, &params, &worker);
}

// All transports of UCX on this machine, whatever the user asked for.
std::string ways_there_are(const Library& ucp) {
  const Config config = read_config(ucp);
  ucp.config_modify(config.get(), "TLS", "all");
  ucp.config_modify(config.get(), "NET_DEVICES", "all");
  ucp_context_h context = nullptr;
  if (init(ucp, config.get(), 1, context) != UCS_OK) return "nothing";
  const auto resources = resources_in(resources_of(ucp, context));
  ucp.cleanup(context);
  return fmt::format("{}", fmt::join(std::set(resources.begin(), resources.end()), ", "));
}

[[noreturn]] void fail_without_context(const Library& ucp, ucs_status_t status) {
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("UCX has no usable transport ({}): check UCX_TLS and UCX_NET_DEVICES; "
                          "this machine has {} (ucx_info -d), and UCX chooses among them "
                          "by itself",
                          text_of(ucp, status), ways_there_are(ucp)));
}

[[noreturn]] void fail_without_worker(const Library& ucp, ucs_status_t status, bool has_met_limit) {
  rlimit limit{};
  if (has_met_limit && ::getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    throw Error(
        ErrorCode::kUnavailable, kNoPeer,
        fmt::format("UCX cannot open its transports ({}): its shared-memory queues are files, "
                    "and the limit on file sizes is {} bytes; raise it (ulimit -f), or use "
                    "UCX without these queues (UCX_TLS=tcp, or unset it)",
                    text_of(ucp, status), limit.rlim_cur));
  }
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("UCX cannot open its transports ({}): see its message above; "
                          "room in /dev/shm may be short, or locked memory (ulimit -l), and "
                          "UCX_TLS=tcp does without both",
                          text_of(ucp, status)));
}

}  // namespace

std::string resources_of(const Library& ucp, ucp_context_h context) {
  return text_printed_by([&](FILE* stream) { ucp.context_print_info(context, stream); });
}

Opened open_worker(const Library& ucp, int size) {
  const LongFilesAreErrors long_files_are_errors;
  ucs_status_t first = UCS_OK;  // why the worker could not be opened
  for (const char* const ways : kGoesWithout) {
    Opened opened;
    const auto found = open_context(ucp, size, ways, opened.context);
    if (found != UCS_OK && first == UCS_OK) fail_without_context(ucp, found);
    if (found != UCS_OK) continue;
    const auto status = open_worker_in(ucp, opened.context, opened.worker);
    if (status == UCS_OK) return opened;
    ucp.cleanup(opened.context);
    if (first == UCS_OK) first = status;
    if (is_in_environment("UCX_TLS")) break;
  }
  fail_without_worker(ucp, first, long_files_are_errors.has_met_limit());
}

}  // namespace kolo::inline v0::ucx

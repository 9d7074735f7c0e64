// Program that runs a command with some system calls denied, as on old kernels and in strict
// containers.
//
//   without CALL=ERROR[,CALL=ERROR...] COMMAND [ARGUMENT...]
//
// CALL is memfd_create, process_vm_readv, process_vm_writev, membarrier, fallocate or shmget; ERROR
// is ENOSYS, EPERM or ENOSPC. It uses a seccomp filter, which all children inherit. Exit code 77 if
// the kernel allows no filter.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr int kSkipped = 77;

struct Refusal {
  unsigned call = 0;
  unsigned error = 0;
};

struct Name {
  std::string_view text;
  long number;
};

constexpr Name kCalls[] = {{"memfd_create", SYS_memfd_create},
                           {"process_vm_readv", SYS_process_vm_readv},
                           {"process_vm_writev", SYS_process_vm_writev},
                           {"membarrier", SYS_membarrier},
                           {"fallocate", SYS_fallocate},
                           {"shmget", SYS_shmget}};
constexpr Name kErrors[] = {{"ENOSYS", ENOSYS}, {"EPERM", EPERM}, {"ENOSPC", ENOSPC}};

template <std::size_t n>
std::optional<unsigned> find(const Name (&names)[n], std::string_view text) {
  for (const Name& name : names) {
    if (name.text == text) return static_cast<unsigned>(name.number);
  }
  return std::nullopt;
}

std::optional<Refusal> parse(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto call = find(kCalls, text.substr(0, equals));
  const auto error = find(kErrors, text.substr(equals + 1));
  if (!call || !error) return std::nullopt;
  return Refusal{*call, *error};
}

std::vector<Refusal> parse_all(std::string_view text) {
  std::vector<Refusal> refusals;
  while (true) {
    const auto comma = text.find(',');
    const auto refusal = parse(text.substr(0, comma));
    if (!refusal) return {};
    refusals.push_back(*refusal);
    if (comma == std::string_view::npos) return refusals;
    text.remove_prefix(comma + 1);
  }
}

// Calls of another architecture are allowed; these tests make none.
bool refuse(const std::vector<Refusal>& refusals) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const Refusal& refusal : refusals) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal.call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | refusal.error));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto refusals = argc > 2 ? parse_all(argv[1]) : std::vector<Refusal>{};
  if (refusals.empty()) {
    std::fprintf(stderr, "usage: without CALL=ERROR[,CALL=ERROR...] COMMAND [ARGUMENT...]\n");
    return 2;
  }
  if (!refuse(refusals)) {
    std::fprintf(stderr, "without: no seccomp filter here: %s\n", std::strerror(errno));
    return kSkipped;
  }
  ::execvp(argv[2], argv + 2);
  std::fprintf(stderr, "without: %s: %s\n", argv[2], std::strerror(errno));
  return 127;
}

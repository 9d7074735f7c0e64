#include "test/transports/ofi/failing_libfabric.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <cstdio>
#include <cstdlib>

namespace kolo::test {

namespace {

thread_local std::string failing;  // empty: all providers
thread_local Fails fails_at = Fails::kNever;

// Replace the provider's tables for the objects that this thread opens and closes.
thread_local fi_ops_fabric fabric_calls;
thread_local fi_ops_domain domain_calls;
thread_local fi_ops_tagged tagged_calls;
thread_local fi_ops_cm cm_calls;
thread_local decltype(fi_ops_fabric::domain) real_domain = nullptr;
thread_local decltype(fi_ops_domain::endpoint) real_endpoint = nullptr;
thread_local decltype(fi_ops_tagged::injectdata) real_inject = nullptr;

template <typename Function>
Function* real(const char* name) {
  static void* const library = ::dlopen(KOLO_LIBFABRIC, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "no %s in %s\n", name, KOLO_LIBFABRIC);
    std::abort();
  }
  return reinterpret_cast<Function*>(symbol);
}

int no_domain(fid_fabric*, fi_info*, fid_domain**, void*) { return -FI_ENOKEY; }

int no_endpoint(fid_domain*, fi_info*, fid_ep**, void*) { return -FI_ENOKEY; }

ssize_t inject_or_refuse(fid_ep* endpoint, const void* data, size_t bytes, std::uint64_t word,
                         fi_addr_t to, std::uint64_t tag) {
  if (fails_at == Fails::kInjecting) return -FI_ENOTCONN;
  return real_inject(endpoint, data, bytes, word, to, tag);
}

int refusing_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  const int result = real_endpoint(domain, info, endpoint, context);
  if (result != 0) return result;
  tagged_calls = *(*endpoint)->tagged;
  real_inject = tagged_calls.injectdata;
  tagged_calls.injectdata = inject_or_refuse;
  (*endpoint)->tagged = &tagged_calls;
  return 0;
}

int no_name(fid*, void*, size_t*) { return -FI_ENOKEY; }

int nameless_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  const int result = real_endpoint(domain, info, endpoint, context);
  if (result != 0) return result;
  cm_calls = *(*endpoint)->cm;
  cm_calls.getname = no_name;
  (*endpoint)->cm = &cm_calls;
  return 0;
}

int domain_without_endpoints(fid_fabric* fabric, fi_info* info, fid_domain** domain,
                             void* context) {
  const int result = real_domain(fabric, info, domain, context);
  if (result != 0) return result;
  domain_calls = *(*domain)->ops;
  real_endpoint = domain_calls.endpoint;
  domain_calls.endpoint = fails_at == Fails::kInjecting ? refusing_endpoint
                          : fails_at == Fails::kNaming  ? nameless_endpoint
                                                        : no_endpoint;
  (*domain)->ops = &domain_calls;
  return 0;
}

bool is_failing(const fi_fabric_attr& attributes) {
  return fails_at != Fails::kNever && (failing.empty() || failing == attributes.prov_name);
}

}  // namespace

void let_fail(const std::string& provider, Fails at) {
  failing = provider;
  fails_at = at;
}

void let_all_fail(Fails at) { let_fail("", at); }

}  // namespace kolo::test

using namespace kolo::test;

extern "C" {

std::uint32_t fi_version() { return real<decltype(fi_version)>("fi_version")(); }

int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints, fi_info** info) {
  return real<decltype(fi_getinfo)>("fi_getinfo")(version, node, service, flags, hints, info);
}

void fi_freeinfo(fi_info* info) { real<decltype(fi_freeinfo)>("fi_freeinfo")(info); }

fi_info* fi_dupinfo(const fi_info* info) { return real<decltype(fi_dupinfo)>("fi_dupinfo")(info); }

const char* fi_strerror(int error) { return real<decltype(fi_strerror)>("fi_strerror")(error); }

int fi_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  const bool fails = is_failing(*attributes);
  if (fails && fails_at == Fails::kFabric) return -FI_ENOKEY;
  const int result = real<decltype(fi_fabric)>("fi_fabric")(attributes, fabric, context);
  if (result != 0 || !fails) return result;
  fabric_calls = *(*fabric)->ops;
  real_domain = fabric_calls.domain;
  fabric_calls.domain = fails_at == Fails::kDomain ? no_domain : domain_without_endpoints;
  (*fabric)->ops = &fabric_calls;
  return 0;
}
}

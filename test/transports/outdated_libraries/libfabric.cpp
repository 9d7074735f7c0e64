// A libfabric.so.1 that has all that the transport ofi calls, and is older than what it needs.
extern "C" {
unsigned fi_version() { return 1U << 16 | 10U; }
// By name alone: who has seen the version calls none of them.
int fi_getinfo() { return -1; }
void fi_freeinfo() {}
void* fi_dupinfo() { return nullptr; }
int fi_fabric() { return -1; }
const char* fi_strerror() { return ""; }
}

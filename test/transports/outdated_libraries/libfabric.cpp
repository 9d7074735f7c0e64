// A libfabric.so.1 with all functions that the transport ofi calls, but of an older version than it
// needs.
extern "C" {
unsigned fi_version() { return 1U << 16 | 10U; }
// Only the names matter: after the version check no caller uses them.
int fi_getinfo() { return -1; }
void fi_freeinfo() {}
void* fi_dupinfo() { return nullptr; }
int fi_fabric() { return -1; }
const char* fi_strerror() { return ""; }
}

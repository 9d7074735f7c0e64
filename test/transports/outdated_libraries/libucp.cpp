// A libucp.so.0 of an older version than the transport ucx needs.
extern "C" void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = 12;
  *release = 0;
}

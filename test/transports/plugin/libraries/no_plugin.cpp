// A library that is no transport.
extern "C" int something_else();

extern "C" int something_else() { return 0; }

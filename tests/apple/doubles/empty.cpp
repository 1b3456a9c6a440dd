// A library without any of the functions that are looked up in it.
extern "C" __attribute__((visibility("default"))) int nnbt_double_empty() { return 0; }

// A library that lacks every function that is looked for in it.
extern "C" __attribute__((visibility("default"))) int nnbt_double_empty() { return 0; }

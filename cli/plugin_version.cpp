// In every plug-in: the program whose structures it shares.
extern "C" const char* gccl_plugin_version() { return GCCL_VERSION_TEXT; }

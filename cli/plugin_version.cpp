// In every plug-in: the program whose structures it shares.
#include "cli/plugin_abi.hpp"

extern "C" const char* gccl_plugin_version() { return GCCL_VERSION_TEXT; }
extern "C" const char* gccl_plugin_abi() { return GCCL_PLUGIN_ABI; }

// Version and result texts: what needs no communicator.
#include "gccl/gccl.h"

#define GCCL_TEXT(x) #x
#define GCCL_EXPAND(x) GCCL_TEXT(x)

extern "C" {

int GCCL_Get_version(void) { return GCCL_VERSION_CODE; }

const char* GCCL_Version_string(void) {
  return GCCL_EXPAND(GCCL_VERSION_MAJOR) "." GCCL_EXPAND(GCCL_VERSION_MINOR) "." GCCL_EXPAND(GCCL_VERSION_PATCH);
}

const char* GCCL_Error_string(GCCL_Result result) {
  switch (result) {
    case GCCL_SUCCESS: return "success";
    case GCCL_ERR_DEVICE: return "a device library failed";
    case GCCL_ERR_SYSTEM: return "the operating system refused";
    case GCCL_ERR_INTERNAL: return "internal error";
    case GCCL_ERR_INVALID_ARGUMENT: return "invalid argument";
    case GCCL_ERR_INVALID_USAGE: return "invalid usage";
    case GCCL_ERR_REMOTE: return "another rank failed";
    case GCCL_IN_PROGRESS: return "in progress";
    case GCCL_ERR_MISMATCH: return "the ranks' calls differ";
    case GCCL_ERR_TIMEOUT: return "not complete in time";
    case GCCL_ERR_PEER_LOST: return "a peer is lost";
    case GCCL_ERR_ABORTED: return "aborted";
    case GCCL_ERR_AUTHENTICATION: return "a peer does not know the secret";
    case GCCL_ERR_NOT_SUPPORTED: return "not supported";
    case GCCL_ERR_REVOKED: return "revoked";
    case GCCL_ERR_RANKS_CHANGED:
      return "ranks failed, and the communicator goes on without them, or with others in their places";
  }
  return "unknown result";
}

}  // extern "C"

/* The interface between GCCL and what moves its bytes: shared memory, TCP, or a plug-in of yours.
 *
 * A plug-in is a shared library in a folder of GCCL_BACKEND_PATH, named libgccl_backend_NAME.so, that exports
 *   const GCCL_Backend* GCCL_Backend_entry_v1(void);
 * and is used where GCCL_BACKENDS (or GCCL_Config.backends) names it. examples/ has a complete one.
 *
 * The life of a port, one for each communicator and one for each job:
 *   open_port      makes it, and says in at most GCCL_BACKEND_ADDRESS_BYTES bytes how peers reach it
 *   (the library exchanges the addresses between all ranks of the communicator)
 *   connect_port   gets all addresses, says which peers it will serve
 *   (the library waits until every rank has come this far)
 *   port_connected the names by which peers found the port are needed no longer
 *   send, receive, poll ...
 *   close_port
 * Threads: an instance's ports may be used by several threads at once, each port by one thread at a time.
 */
#ifndef GCCL_BACKEND_H
#define GCCL_BACKEND_H

#include "gccl/gccl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCCL_BACKEND_ABI 1
#define GCCL_BACKEND_ADDRESS_BYTES 256
#define GCCL_BACKEND_TEXT_BYTES 240

/* The sender has nothing else to do until the message is taken: it may as well spend time on it. */
#define GCCL_HINT_ONE_WAY 1u
/* The data may well be in the sender's caches, just written. */
#define GCCL_HINT_FRESH 2u

/* One message between this rank and a peer. Messages from a to b on one channel of a port meet b's receives from a on
 * that channel in order. The library owns it; it stays where it is from send/receive until it is complete or cancelled.
 */
typedef struct GCCL_Transfer {
  uint32_t peer;    /* rank in the port's communicator */
  uint32_t channel; /* 0 .. GCCL_Port_spec.channels - 1; channels must not wait for each other */
  void* data;       /* what to send, or where it goes; null when there are no bytes, or when consume is set */
  uint64_t bytes;
  /* Both sides' must be equal, as their bytes must. Where they are not, the receive ends with GCCL_ERR_MISMATCH and
   * *_found hold the sender's. */
  uint64_t signature, signature_found, bytes_found;
  /* Receives only, or null: called with each piece as it arrives instead of storing it in data; pieces come in order,
   * are multiples of `grain` bytes (but for the last), and are aligned to 64 bytes. Called from receive or poll. */
  void (*consume)(struct GCCL_Transfer* transfer, const void* piece, uint64_t offset, uint64_t bytes);
  uint32_t grain;
  uint32_t hints; /* GCCL_HINT_*; a backend may ignore them */
  int32_t result; /* a GCCL_Result; set by the backend when the transfer is complete */
  /* Until then the backend's own. */
  struct GCCL_Transfer* next;
  uint64_t backend[4];
  /* The library's own. */
  void* owner;
  uint64_t cookie;
} GCCL_Transfer;

/* What a backend needs to know about the rank it serves. Everything outlives the instance. */
typedef struct GCCL_Backend_environment {
  uint32_t struct_bytes;
  uint32_t rank, size;                      /* in the world */
  const char* host;                         /* ranks on one machine have the same text */
  const char* secret;                       /* "" when there is none: then nothing may listen beyond loopback */
  const char* address;                      /* IP address or interface to listen on; "" when the backend may choose */
  void (*log)(int level, const char* text); /* level 0: error, 1: warning, 2: information */
  /* 1: a thread of the library's own polls, besides those that call it. Missing where struct_bytes ends before it. */
  int64_t progress_thread;
} GCCL_Backend_environment;

typedef struct GCCL_Port_spec {
  uint32_t struct_bytes;
  uint32_t rank, size; /* in the communicator */
  uint32_t channels;
  uint64_t communicator;      /* a number that distinguishes the communicators of a job, the same on every rank */
  const uint32_t* node;       /* node[r]: which node rank r is on; valid during open_port and connect_port */
  const uint32_t* world_rank; /* world_rank[r]; likewise */
  /* connect_port may take so long to find out whether peers can be reached; 0: it does not wait. Missing where
   * struct_bytes ends before it. */
  int64_t connect_timeout_ms;
} GCCL_Port_spec;

/* Why a port no longer works. */
typedef struct GCCL_Fault {
  int32_t result; /* GCCL_ERR_PEER_LOST, GCCL_ERR_ABORTED, ... */
  uint32_t peer;  /* the rank concerned: the one that is lost, or the one that called abort */
  char text[GCCL_BACKEND_TEXT_BYTES];
} GCCL_Fault;

typedef struct GCCL_Backend {
  uint32_t abi; /* GCCL_BACKEND_ABI */
  const char* name;

  /* One instance for each rank of this process. On failure: text (GCCL_BACKEND_TEXT_BYTES) says why. */
  GCCL_Result (*open)(const GCCL_Backend_environment* environment, void** instance, char* text);
  void (*close)(void* instance);

  /* address: GCCL_BACKEND_ADDRESS_BYTES bytes, zeroed. */
  GCCL_Result (*open_port)(void* instance, const GCCL_Port_spec* spec, void** port, void* address, char* text);
  /* addresses: size * GCCL_BACKEND_ADDRESS_BYTES, all zero for a rank without this backend. Sets reaches[r] to 1 for
   * each rank it can serve, both ways; others it leaves. Rank r must come to the same answer about this rank. */
  GCCL_Result (*connect_port)(void* port, const GCCL_Port_spec* spec, const void* addresses, uint8_t* reaches,
                              char* text);
  void (*port_connected)(void* port);
  void (*close_port)(void* port);

  /* Begin a transfer. 1: complete (look at result). 0: poll will return it. Never wait. A send is complete once its
   * data may change. */
  int (*send)(void* port, GCCL_Transfer* transfer);
  int (*receive)(void* port, GCCL_Transfer* transfer);
  /* Makes progress; puts at most max complete transfers into done and returns how many. -1: the port no longer works.
   */
  int (*poll)(void* port, GCCL_Transfer** done, int max);
  /* After -1. */
  void (*fault)(void* port, GCCL_Fault* fault);
  /* The backend forgets the transfer and no longer touches its memory. Only on a port that is then closed. */
  void (*cancel)(void* port, GCCL_Transfer* transfer);
  /* Makes every peer's port fail with this fault, as far as they can be reached. Any thread; does not wait. */
  void (*abort)(void* port, const GCCL_Fault* fault);
} GCCL_Backend;

typedef const GCCL_Backend* (*GCCL_Backend_entry)(void);
#define GCCL_BACKEND_ENTRY "GCCL_Backend_entry_v1"

#ifdef __cplusplus
}
#endif

#endif

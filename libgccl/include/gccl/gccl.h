/* GCCL's C interface: collective and point-to-point communication between the ranks of a communicator.
 *
 * Rules that hold for every function unless its comment says otherwise:
 * - Every function returns a GCCL_Result. GCCL_Last_error() then says in words which rank, operation and peer were
 *   concerned and what to check. Wrong arguments are reported before anything is sent.
 * - `count` is in elements of `dtype`. Buffers belong to the caller, are aligned to the element, and must stay
 *   untouched until the call (blocking) or its request (I-forms) is complete; sendbuf may be read at the same time. A
 *   buffer without elements may be null.
 * - Collective calls must be made by every rank of the communicator, in the same order and with the same arguments
 *   apart from the buffers. Calls that differ are reported as GCCL_ERR_MISMATCH on every rank: by the call itself
 *   within about a second where a rank waits in it, else by a later call, and by GCCL_Comm_free or GCCL_Finalize at
 *   the latest (docs/api.md, "Calls that differ", says what is found when, and what is not).
 * - In place: pass GCCL_IN_PLACE as sendbuf (for GCCL_Scatter: as recvbuf at the root), or NCCL's own addresses (named
 *   at each call). Else the two buffers must not overlap; that is not checked.
 * - Threads: any thread may use any communicator; calls on one communicator are carried out one after the other, in
 *   the order in which they were started. Different communicators do not wait for each other. Cancelling a thread
 *   (pthread_cancel) that is inside a call ends the process: GCCL_Abort, from any thread, ends what it waits for; a
 *   thread that others may cancel at any time disables that around its calls (pthread_setcancelstate).
 * - After GCCL_ERR_MISMATCH, GCCL_ERR_TIMEOUT, GCCL_ERR_REMOTE, GCCL_ERR_PEER_LOST, GCCL_ERR_ABORTED or
 *   GCCL_ERR_REVOKED a communicator is broken: every later call on it returns the same error until it is freed (with
 *   GCCL_SHRINK lost peers apart). So it is after any error of a rank that carries a call out; the other ranks get the
 *   same code: GCCL_ERR_SYSTEM where memory runs short, GCCL_ERR_INVALID_USAGE where a function of GCCL_Op_create
 *   throws. A wait for a message that a rank has not sent, and still could, ends by the timeout alone;
 *   GCCL_Last_error() then says what every rank waits for.
 */
#ifndef GCCL_H
#define GCCL_H

#include <stddef.h>
#include <stdint.h>

#define GCCL_VERSION_MAJOR 0
#define GCCL_VERSION_MINOR 1
#define GCCL_VERSION_PATCH 0
#define GCCL_VERSION_CODE (GCCL_VERSION_MAJOR * 10000 + GCCL_VERSION_MINOR * 100 + GCCL_VERSION_PATCH)

#if defined(__GNUC__)
#define GCCL_API __attribute__((visibility("default")))
#else
#define GCCL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Codes. 0 to 99 as in nccl.h, GCCL's own from 100. ---- */

typedef enum GCCL_Result {
  GCCL_SUCCESS = 0,
  GCCL_ERR_DEVICE = 1,           /* a device's own library failed */
  GCCL_ERR_SYSTEM = 2,           /* the operating system refused: sockets, memory, files */
  GCCL_ERR_INTERNAL = 3,         /* a defect of GCCL's */
  GCCL_ERR_INVALID_ARGUMENT = 4, /* an argument is wrong; nothing was started */
  GCCL_ERR_INVALID_USAGE = 5,    /* right arguments at the wrong time, such as before GCCL_Init */
  GCCL_ERR_REMOTE = 6,           /* another rank failed and said so */
  GCCL_IN_PROGRESS = 7,          /* not an error: not complete yet */
  GCCL_ERR_MISMATCH = 100,       /* the ranks' calls differ */
  GCCL_ERR_TIMEOUT = 101,        /* not complete in time; GCCL_Last_error() names the peer that was waited for */
  GCCL_ERR_PEER_LOST = 102,      /* a peer's process or connection is gone */
  GCCL_ERR_ABORTED = 103,        /* GCCL_Abort was called, here or elsewhere */
  GCCL_ERR_AUTHENTICATION = 104, /* a peer could not prove that it knows the secret */
  GCCL_ERR_NOT_SUPPORTED = 105,  /* a right call that this build or backend cannot serve */
  GCCL_ERR_REVOKED = 106,        /* GCCL_Comm_revoke was called, here or elsewhere */
  GCCL_ERR_RANKS_CHANGED = 107   /* ranks failed, comm goes on with fewer or others; the call was not carried out */
} GCCL_Result;

typedef int32_t GCCL_Dtype;
enum {
  GCCL_INT8 = 0,
  GCCL_UINT8 = 1,
  GCCL_INT32 = 2,
  GCCL_UINT32 = 3,
  GCCL_INT64 = 4,
  GCCL_UINT64 = 5,
  GCCL_FLOAT16 = 6,
  GCCL_FLOAT32 = 7,
  GCCL_FLOAT64 = 8,
  GCCL_BFLOAT16 = 9,
  GCCL_INT16 = 100,
  GCCL_UINT16 = 101
  /* from 1000: GCCL_Type_create */
};

typedef int32_t GCCL_Op;
enum {
  GCCL_SUM = 0,
  GCCL_PROD = 1,
  GCCL_MAX = 2,
  GCCL_MIN = 3,
  GCCL_AVG = 4 /* the sum, in the elements' own type, divided by the number of ranks; integers truncate (docs/api.md) */
  /* from 1000: GCCL_Op_create */
};

typedef struct GCCL_Communicator* GCCL_Comm;     /* null is GCCL_COMM_NULL */
typedef struct GCCL_Request_state* GCCL_Request; /* null is GCCL_REQUEST_NULL, which is complete */

#define GCCL_COMM_NULL ((GCCL_Comm)0)
#define GCCL_REQUEST_NULL ((GCCL_Request)0)
#define GCCL_IN_PLACE ((void*)(intptr_t)-1)
#define GCCL_UNDEFINED (-1) /* a color in GCCL_Comm_split: no communicator for me */
#define GCCL_TIMEOUT_NONE (-1)

/* ---- Start and end ---- */

/* An all-gather of the caller's own, for GCCL_Config.allgather: `mine` has `bytes` bytes; afterwards `all` holds those
 * of every rank, in rank order. Collective. Returns 0 on success. */
typedef int (*GCCL_Allgather_function)(const void* mine, void* all, size_t bytes, void* context);

/* How to start. Begin with GCCL_CONFIG_INIT; what is left alone comes from the environment (docs/start.md lists
 * the variables). Strings are copied. */
typedef struct GCCL_Config {
  size_t struct_bytes; /* sizeof(GCCL_Config); set by GCCL_CONFIG_INIT */
  int rank, size;      /* -1: from the environment */
  const char* store;   /* where ranks meet: "tcp://HOST:PORT" (rank 0 listens) or "file:///PATH"; null: environment */
  GCCL_Allgather_function allgather; /* instead of a store */
  void* allgather_context;
  const char* secret;   /* shared secret; null: GCCL_SECRET, GCCL_SECRET_FILE, or none (then loopback only) */
  const char* backends; /* "shm,tcp" (the default): the first that reaches a peer serves it; null: GCCL_BACKENDS */
  const char* host;     /* ranks with the same text are on one machine; null: found out */
  const char* address;  /* IP address or interface name to listen on; null: GCCL_ADDRESS, or found out */
  int64_t timeout_ms;   /* of each call; GCCL_TIMEOUT_NONE; -2: GCCL_TIMEOUT_MS, or none */
  int progress_thread;  /* 1: a thread makes progress; 0: only calls do; -1: GCCL_PROGRESS_THREAD, or 0 */
} GCCL_Config;
#define GCCL_CONFIG_INIT \
  { sizeof(GCCL_Config), -1, -1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -2, -1 }

/* Makes this process one rank, and stores the communicator of all ranks in *world. Collective over all ranks; returns
 * when every rank is connected or has failed. `config` may be null. May be called again after GCCL_Finalize, and
 * several times to be several ranks (from one thread per rank, or with GCCL_Init_ranks). One thread can make the ranks'
 * calls in a group (GCCL_Group_start) or as I-forms; a blocking call outside of one needs a thread for each rank: where
 * it waits for another rank of a process that has one thread, it is GCCL_ERR_INVALID_USAGE, and ends the communicator.
 */
GCCL_API GCCL_Result GCCL_Init(GCCL_Comm* world, const GCCL_Config* config);
/* Makes this process the `n` ranks in ranks[0 .. n-1] at once; worlds[i] is the communicator of ranks[i]. All are
 * looked at before any starts. */
GCCL_API GCCL_Result GCCL_Init_ranks(GCCL_Comm* worlds, const int* ranks, int n, const GCCL_Config* config);
/* Frees every communicator of this process. Waits until every rank has called it, for as long as the communicators of
 * all ranks allow a call (GCCL_Comm_set_timeout), so that peers have what was sent to them; not where the communicator
 * of all ranks has failed or was freed before: then free those that are left by GCCL_Comm_free. Operations still in
 * flight are an error (GCCL_ERR_INVALID_USAGE), and are dropped. Where another thread waits in a call, or a function of
 * GCCL_On_failure is running, that is the error, and nothing is freed. Functions of GCCL_On_complete that are running
 * in other threads are waited for, and begin in this thread alone until all is freed. */
GCCL_API GCCL_Result GCCL_Finalize(void);

/* GCCL_VERSION_CODE of the library that runs; "0.1.0". */
GCCL_API int GCCL_Get_version(void);
GCCL_API const char* GCCL_Version_string(void);

/* ---- Communicators ---- */

GCCL_API GCCL_Result GCCL_Comm_rank(GCCL_Comm comm, int* rank);
GCCL_API GCCL_Result GCCL_Comm_size(GCCL_Comm comm, int* size);
/* Collective. Ranks with the same color (>= 0) make a communicator, ordered by key, then by rank. With color
 * GCCL_UNDEFINED *out becomes GCCL_COMM_NULL. */
GCCL_API GCCL_Result GCCL_Comm_split(GCCL_Comm comm, int color, int key, GCCL_Comm* out);
/* Collective over all of `comm`. A communicator of ranks[0 .. n-1] of comm, in that order (the same list on every rank
 * of it); ranks outside the list pass it too, or n = 0, and get GCCL_COMM_NULL. Lists
 * that differ are GCCL_ERR_MISMATCH on every rank, and comm goes on. */
GCCL_API GCCL_Result GCCL_Comm_create(GCCL_Comm comm, const int* ranks, int n, GCCL_Comm* out);
/* Collective. Sets *comm to GCCL_COMM_NULL. Operations in flight are an error, as in GCCL_Finalize, and so is another
 * thread in a call on comm; one whose call has ended, as by GCCL_Abort, is waited for until it has left it. So are
 * functions of GCCL_On_complete of comm's requests; those of others must not use comm any more. */
GCCL_API GCCL_Result GCCL_Comm_free(GCCL_Comm* comm);
/* The same, but waits for nobody, for a rank that cannot wait: legal once no rank will start another call on comm, as
 * after a GCCL_Ibarrier that every rank made its last one. Local. An error on comm that no call has returned yet is its
 * result; comm is released all the same. */
GCCL_API GCCL_Result GCCL_Comm_release(GCCL_Comm* comm);
/* The time every later call on comm may take, in milliseconds; GCCL_TIMEOUT_NONE for no limit. 0 is not allowed. It
 * begins when the calls before it are complete: collectives before a collective, messages from, or to, a rank before
 * another one. */
GCCL_API GCCL_Result GCCL_Comm_set_timeout(GCCL_Comm comm, int64_t timeout_ms);
/* Which rank of comm is on which node: nodes[r] for each rank r, numbered from 0 in the order of their lowest ranks. */
GCCL_API GCCL_Result GCCL_Comm_nodes(GCCL_Comm comm, int* nodes);
/* Ends all operations of comm on every rank with GCCL_ERR_ABORTED; `code` appears in their messages. Local and
 * immediate: may be called from any thread while others wait. The process goes on. */
GCCL_API GCCL_Result GCCL_Abort(GCCL_Comm comm, int code);

/* ---- Going on without ranks that have failed: the semantics of MPI's ULFM ----
 *
 * A rank that fails ends its communicators with GCCL_ERR_PEER_LOST on all ranks. Those that are left then call
 * GCCL_Comm_shrink, and go on with the communicator that it makes. The calls below work on communicators that have
 * failed, or were revoked, for as long as they are not freed. Failed is a rank whose process has ended, where it is or
 * was on this machine; one on another machine, where its transport has lost it, or it was silent for GCCL_DETECTION_MS.
 * What a transport loses while a rank waits in these calls does not count: with GCCL_DETECTION_MS=0 one of another
 * machine that ends meanwhile is waited for until the time limit.
 * The others go on where they are more than half of comm, or half with its first rank, or where every other process is
 * known to have ended; else the calls return GCCL_ERR_PEER_LOST, since the others might go on, too. The first of these
 * calls starts a thread. One that takes longer than the time limit ends comm and all later ones of them with
 * GCCL_ERR_TIMEOUT, on all ranks; a GCCL_ERR_PEER_LOST of theirs does not. A rank that runs short of memory or threads
 * in GCCL_Comm_agree, _shrink or _grow gets GCCL_ERR_SYSTEM from it and from all later ones; the others go on without
 * that rank, as without one that has left, or get an error; on several machines they wait for it until it ends. */

/* Ends all operations of comm on every rank with GCCL_ERR_REVOKED, also those of ranks that wait for others than the
 * failed ones. Local; one rank suffices. */
GCCL_API GCCL_Result GCCL_Comm_revoke(GCCL_Comm comm);
/* How many ranks of comm are known here to have failed, and which: at most `capacity` of them go to ranks, which may be
 * null when that is 0. Local. */
GCCL_API GCCL_Result GCCL_Comm_get_failed(GCCL_Comm comm, int* ranks, int capacity, int* count);
/* This rank knows of all failures that GCCL_Comm_get_failed returns now. Local. */
GCCL_API GCCL_Result GCCL_Comm_ack_failed(GCCL_Comm comm);
/* Collective over the ranks that have not failed. *flags becomes the bitwise AND of theirs, the same on all of them; so
 * is the result: GCCL_ERR_PEER_LOST, with *flags set, where a rank has failed that not all had acknowledged. */
GCCL_API GCCL_Result GCCL_Comm_agree(GCCL_Comm comm, uint64_t* flags);
/* Collective over the ranks that have not failed: stores a communicator of them, in the order of their ranks, in *out.
 * Who fails meanwhile is left out as well. */
GCCL_API GCCL_Result GCCL_Comm_shrink(GCCL_Comm comm, GCCL_Comm* out);
/* Collective over the ranks that have not failed: stores a communicator of them, and of at most `most` processes that
 * have called GCCL_Join, in *out. Waits until so many are there, for wait_ms at most (0: for those that wait already,
 * which takes 0.6 s), and goes on with those that are there; with none *out is what GCCL_Comm_shrink makes. The
 * processes get the numbers of ranks that have failed, that of GCCL_RANK where it is one, else the lowest, so that all
 * others keep theirs when all are replaced; those beyond come after all others. Who fails meanwhile is left out: a rank
 * as by shrink, a process as if it had not come. The same `most` on every rank; of the ranks' wait_ms the shortest
 * counts. comm stays as it is, with its own ranks. `most` >= 1. What joins is met at the job's store
 * (GCCL_Config.store): on the machine of a TCP store, or by a file beside those of a file store. Errors:
 * GCCL_ERR_MISMATCH where ranks ask for different things, on all of them; GCCL_ERR_NOT_SUPPORTED where there is no
 * store, or no rank that is left on its machine; GCCL_ERR_SYSTEM where its port is taken, as by another communicator of
 * the job that grows: one at a time. */
GCCL_API GCCL_Result GCCL_Comm_grow(GCCL_Comm comm, int most, int64_t wait_ms, GCCL_Comm* out);
/* Makes this process, which need be no rank yet, one of a job that runs, and stores the communicator that
 * GCCL_Comm_grow makes there in *comm: waits until the job's ranks call that, for GCCL_JOIN_TIMEOUT_MS (without limit
 * by default). The store, the secret and all settings that ranks must have in common are the job's; rank and size in
 * `config` mean nothing. GCCL_Init does the same where GCCL_JOIN is 1 in the environment (`gccl launch --spares`).
 * Errors: GCCL_ERR_TIMEOUT; GCCL_ERR_AUTHENTICATION for another secret; GCCL_ERR_INVALID_USAGE for another version or
 * other settings, with what differs, and for a rank of that job that has one thread and has not left it. The job goes
 * on without it. */
GCCL_API GCCL_Result GCCL_Join(GCCL_Comm* comm, const GCCL_Config* config);
/* How many ranks of comm are new, the same on all ranks, and which, by their numbers now: at most `capacity` of them go
 * to ranks, which may be null when that is 0. New are those that joined when GCCL_Comm_grow or GCCL_Join made comm, or,
 * since it has recovered (below), in its last recovery; those that joined before that, too, where no blocking
 * collective has succeeded since they did. So the lowest rank that is not new has the state that one collective gives
 * to those that are; where that takes several, ranks keep in mind themselves which they have had. None for any other
 * communicator. Local. */
GCCL_API GCCL_Result GCCL_Comm_get_joined(GCCL_Comm comm, int* ranks, int capacity, int* count);

/* What comm does when ranks of it fail; GCCL_ON_FAILURE=shrink, spare or rejoin in the environment is the policy of the
 * world. At most one communicator of a process has another one than GCCL_FAIL, which those have that are made from it.
 */
typedef int32_t GCCL_Failure_policy;
enum {
  GCCL_FAIL = 0,   /* every call on comm returns an error that says who failed */
  GCCL_SHRINK = 1, /* a blocking collective makes comm smaller first, in place: its size and ranks change */
  GCCL_SPARE = 2,  /* it replaces them first, in place, by processes that wait in GCCL_Join, as far as there are any */
  GCCL_REJOIN = 3  /* the same, by processes that were started again as these ranks (GCCL_RANK), for which it waits */
};
/* With GCCL_SHRINK a blocking GCCL_Allreduce or GCCL_Barrier that finds ranks failed is repeated by those that are
 * left: all of them get the result of all ranks, or all of them that of those that are left. Any other blocking
 * collective returns GCCL_ERR_RANKS_CHANGED on all of them, once, as ranks and blocks have other numbers now; its input
 * is as it was. Sends, receives, I-forms and groups are never repeated: those in flight return GCCL_ERR_PEER_LOST,
 * those begun after that GCCL_ERR_RANKS_CHANGED until a blocking collective has returned it or GCCL_Comm_ack_failed was
 * called (docs/faults.md, "Policies", says what holds, and what it costs). Calls on comm must then be made by one
 * thread at a time. With GCCL_SPARE and GCCL_REJOIN every blocking collective returns GCCL_ERR_RANKS_CHANGED then, as
 * those that have joined have no input for it: GCCL_Comm_get_joined says who they are, and their GCCL_Join, or
 * GCCL_Init, has returned. The others wait for them for GCCL_REPLACE_WAIT_MS; ranks that nobody replaces are left out,
 * as with GCCL_SHRINK. Collective; policies that differ are GCCL_ERR_MISMATCH on every rank, and comm goes on as
 * before. Errors: GCCL_ERR_NOT_SUPPORTED where a rank of the job can receive no datagrams, or send none to another, or
 * another communicator of a rank has a policy other than GCCL_FAIL, or processes that join could meet nobody, as there
 * is no store. */
GCCL_API GCCL_Result GCCL_Comm_set_on_failure(GCCL_Comm comm, GCCL_Failure_policy policy);

enum { GCCL_FAILURE_NOTICED = 0, GCCL_FAILURE_RECOVERED = 1 };
/* What a function of GCCL_On_failure gets; valid until it returns. */
typedef struct GCCL_Failure {
  size_t struct_bytes;  /* sizeof(GCCL_Failure) of the library */
  int32_t stage;        /* GCCL_FAILURE_NOTICED: nothing is done yet. GCCL_FAILURE_RECOVERED: comm goes on */
  int32_t count;        /* ranks that failed: those known here when it is noticed, all that comm lost when recovered */
  const int32_t* ranks; /* their numbers in comm as it was before */
  const int32_t* world_ranks; /* and in the world */
  int32_t size, rank;         /* comm's, now */
  const char* text;           /* the error, in words */
} GCCL_Failure;
typedef void (*GCCL_Failure_function)(GCCL_Comm comm, const GCCL_Failure* failure, void* context);
/* Calls function(comm, failure, context) on this rank when a call on comm has failed as ranks have, whichever call that
 * is, GCCL_Comm_agree, GCCL_Comm_free and GCCL_Finalize among them, before that call returns: once when that is
 * noticed, and with a policy other than GCCL_FAIL once more when comm has recovered, before the call is repeated or
 * returns. Null: no function. No lock of GCCL's is held; the function may take its time (the others wait), save and
 * load state, ask anything of comm, and make calls on communicators that have not failed. It must not communicate or
 * agree on comm nor free it, nor call GCCL_Finalize (GCCL_ERR_INVALID_USAGE). `context` must last until comm is freed
 * or GCCL_Finalize has returned. Calls that the function makes are none of a group that this thread has begun. A child
 * of split or shrink has no function. Local. */
GCCL_API GCCL_Result GCCL_On_failure(GCCL_Comm comm, GCCL_Failure_function function, void* context);

/* ---- Memory that ranks of one machine reach in each other ---- */

/* `bytes` bytes (at least 1), zeroed, at the beginning of a page. Any buffer may lie in such memory, or part of it;
 * from 32 KiB on, in messages between two ranks from 512 KiB on, other ranks of the machine read from it directly
 * instead of asking the system for a copy, which makes large collectives up to twice as fast. As good as ordinary
 * memory for everything else; a child process shares it with its parent, where it would have got a copy. Its pages stay
 * where they are: nothing else is mapped over them, nor are they moved (mmap with MAP_FIXED, mremap), as other ranks
 * would go on reading what was there. Before or after GCCL_Init; any thread. Errors: GCCL_ERR_SYSTEM when the machine
 * has not as much available (/proc/meminfo: MemAvailable and SwapFree). */
GCCL_API GCCL_Result GCCL_Mem_alloc(void** ptr, size_t bytes);
/* What GCCL_Mem_alloc gave, or null. No operation on it may be in flight. Other ranks let go of it with the next
 * message that they read from this rank's memory, on each communicator on which they have read from it, or when that is
 * freed. */
GCCL_API GCCL_Result GCCL_Mem_free(void* ptr);

/* ---- Types and operations of the caller's own ---- */

/* An element of `bytes` bytes (1 .. 65536) that GCCL moves but does not understand: only operations of the caller's own
 * combine it. */
GCCL_API GCCL_Result GCCL_Type_create(size_t bytes, GCCL_Dtype* dtype);
GCCL_API GCCL_Result GCCL_Type_free(GCCL_Dtype* dtype);
/* inout[i] = inout[i] (+) in[i] for count elements. Must be associative and commutative. Runs in whatever thread makes
 * progress, never concurrently for one call. It must not call GCCL. Both arrays are aligned to the greatest power of
 * two that divides an element's size, to 16 bytes at most, where the caller's buffers are; some lie between other data
 * of GCCL's. A function that needs more than 16, as with AVX, copies the elements first. */
typedef void (*GCCL_Op_function)(const void* in, void* inout, size_t count, GCCL_Dtype dtype, void* context);
GCCL_API GCCL_Result GCCL_Op_create(GCCL_Op_function function, void* context, GCCL_Op* op);
/* No call that uses it may be in flight. */
GCCL_API GCCL_Result GCCL_Op_free(GCCL_Op* op);

/* ---- Point to point. The k-th send from a to b on a communicator meets the k-th receive at b from a. ---- */

/* May return before the receive has begun. */
GCCL_API GCCL_Result GCCL_Send(const void* buf, size_t count, GCCL_Dtype dtype, int dest, GCCL_Comm comm);
/* `count` must be the sender's. */
GCCL_API GCCL_Result GCCL_Recv(void* buf, size_t count, GCCL_Dtype dtype, int source, GCCL_Comm comm);

/* ---- Collectives; n is the communicator's size, r the caller's rank ---- */

/* buf: count elements; the root's reach every rank. */
GCCL_API GCCL_Result GCCL_Broadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm);
/* sendbuf: count; recvbuf (root only): count. In place at the root: the input lies in recvbuf. */
GCCL_API GCCL_Result GCCL_Reduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                 int root, GCCL_Comm comm);
/* sendbuf: count; recvbuf: count. In place: the input lies in recvbuf. Every rank gets the same bits, apart from the
 * sign and payload of NaNs. */
GCCL_API GCCL_Result GCCL_Allreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                    GCCL_Comm comm);
/* sendbuf: count; recvbuf: n*count. In place: the input is block r of recvbuf. */
GCCL_API GCCL_Result GCCL_Allgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm);
/* sendbuf: counts[r]; block i of recvbuf has counts[i] elements and begins at displs[i] (elements; blocks do not
 * overlap), or right behind the one before when displs is null. In place: the input is block r of recvbuf. */
GCCL_API GCCL_Result GCCL_Allgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs,
                                     GCCL_Dtype dtype, GCCL_Comm comm);
/* sendbuf: n*count; recvbuf: count, the sum of all ranks' block r. In place with recvbuf = sendbuf + r*count (NCCL);
 * with GCCL_IN_PLACE the input lies in recvbuf (n*count), the result in its first block, and the rest is lost (MPI). */
GCCL_API GCCL_Result GCCL_Reduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                         GCCL_Comm comm);
/* As GCCL_Reduce_scatter with blocks of different lengths: block i has counts[i] elements, side by side. */
GCCL_API GCCL_Result GCCL_Reduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype,
                                          GCCL_Op op, GCCL_Comm comm);
/* sendbuf: n*count, block i for rank i; recvbuf: n*count, block i from rank i. In place: recvbuf is overwritten. */
GCCL_API GCCL_Result GCCL_Alltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm);
/* As GCCL_Alltoall with counts and displacements (elements; null: side by side) for each rank. In place: sendcounts and
 * sdispls are not looked at; recvcounts must be symmetric (what i sends to j is as long as what j sends to i). With
 * sendbuf = recvbuf no block that is sent may overlap one that is received, unless all of them do so exactly: where
 * counts and displacements of both sides are the same, the call is in place. */
GCCL_API GCCL_Result GCCL_Alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                                    const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype, GCCL_Comm comm);
/* sendbuf (root only): n*count; recvbuf: count. In place at the root (recvbuf = GCCL_IN_PLACE, or block root of
 * sendbuf): its block stays where it is. */
GCCL_API GCCL_Result GCCL_Scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root,
                                  GCCL_Comm comm);
/* sendbuf: count; recvbuf (root only): n*count. In place at the root: its block lies in recvbuf. */
GCCL_API GCCL_Result GCCL_Gather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root,
                                 GCCL_Comm comm);
/* Returns once every rank has called it. */
GCCL_API GCCL_Result GCCL_Barrier(GCCL_Comm comm);

/* ---- Non-blocking forms: the same, and *request to wait for (null where the call is refused). Buffers and arrays of
 * counts must stay until then. ---- */

GCCL_API GCCL_Result GCCL_Isend(const void* buf, size_t count, GCCL_Dtype dtype, int dest, GCCL_Comm comm,
                                GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Irecv(void* buf, size_t count, GCCL_Dtype dtype, int source, GCCL_Comm comm,
                                GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ibroadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                                     GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ireduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                  int root, GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Iallreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                     GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Iallgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                                     GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Iallgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs,
                                      GCCL_Dtype dtype, GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ireduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype,
                                          GCCL_Op op, GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ireduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype,
                                           GCCL_Op op, GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ialltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                                    GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ialltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls,
                                     void* recvbuf, const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype,
                                     GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Iscatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root,
                                   GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Igather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root,
                                  GCCL_Comm comm, GCCL_Request* request);
GCCL_API GCCL_Result GCCL_Ibarrier(GCCL_Comm comm, GCCL_Request* request);

/* Waits, frees the request and sets it to GCCL_REQUEST_NULL (a copy of it must not be used then); returns the
 * operation's result. */
GCCL_API GCCL_Result GCCL_Wait(GCCL_Request* request);
/* Waits at most timeout_ms: GCCL_IN_PROGRESS when that was not enough; the operation and the request then go on.
 * GCCL_TIMEOUT_NONE: without a limit, as GCCL_Wait. Below that, as with 0, time is up already. */
GCCL_API GCCL_Result GCCL_Wait_for(GCCL_Request* request, int64_t timeout_ms);
/* Waits for all; returns the first error, after all have ended. */
GCCL_API GCCL_Result GCCL_Waitall(int n, GCCL_Request* requests);
/* Makes progress. *done = 1 and the request freed when it is complete, else *done = 0. */
GCCL_API GCCL_Result GCCL_Test(GCCL_Request* request, int* done);
/* Calls function(result, context) once the operation has ended: from a later GCCL call that makes progress or from the
 * progress thread, never from inside the call that started the operation or from this one. A request is complete once
 * its functions have returned: when GCCL_Wait has returned, or GCCL_Test has set *done, `context` may be freed (from
 * inside the function itself both return at once). So the caller of GCCL_Wait must hold no lock that a function takes.
 * Functions of one request run in the order in which they were added. A function may start operations, test and give up
 * requests; it must not wait, nor free communicators. Calls that it makes are none of a group that the thread which
 * runs it has begun. The request must still be waited for, or given up with GCCL_Request_free. */
typedef void (*GCCL_Completion_function)(GCCL_Result result, void* context);
GCCL_API GCCL_Result GCCL_On_complete(GCCL_Request request, GCCL_Completion_function function, void* context);
/* Gives up the handle; the operation goes on, or its functions have returned; called inside a function, they may return
 * later. Sets it to GCCL_REQUEST_NULL. */
GCCL_API GCCL_Result GCCL_Request_free(GCCL_Request* request);
/* Where the operation has not ended: GCCL_Abort on its communicator. Then as GCCL_Wait. For a rank that cannot go on,
 * and whose buffers are about to go. */
GCCL_API GCCL_Result GCCL_Request_abort(GCCL_Request* request, int code);
/* Makes progress on every communicator of this process, without waiting. */
GCCL_API GCCL_Result GCCL_Progress(void);

/* Between start and end, blocking calls of this thread only begin; GCCL_Group_end carries all of them out together and
 * returns the first error, also that of a call on a communicator in between that was refused or failed by itself. For
 * one thread that drives several ranks, and for sends and receives in any order. Nests. A thread that ends in between
 * gives its calls up, as by GCCL_Request_free: they go on, and use their buffers. What makes or frees communicators
 * (GCCL_Comm_split, _create, _free, _shrink, _grow) waits for the other ranks all the same, and so do GCCL_Comm_agree
 * and GCCL_Comm_set_on_failure: where this process is another rank of comm, too, they need a thread for each rank, and
 * are GCCL_ERR_INVALID_USAGE in between, and where the process has one thread. */
GCCL_API GCCL_Result GCCL_Group_start(void);
GCCL_API GCCL_Result GCCL_Group_end(void);
/* Instead of GCCL_Group_end where not all calls could be made: GCCL_Abort on the communicators of those that have not
 * ended, of calls since the GCCL_Group_start that it answers; then as GCCL_Group_end. */
GCCL_API GCCL_Result GCCL_Group_abort(int code);
/* How many groups of this thread have begun and not ended; 0: none. */
GCCL_API int GCCL_Group_depth(void);

/* ---- Devices and topology. Local calls that need no GCCL_Init; any thread may make them. ---- */

enum { GCCL_NAME_BYTES = 96, GCCL_DEVICE_CPU = 0, GCCL_DEVICE_GPU = 1 };

/* A thing of this machine that ranks run on. Today: one CPU device for each NUMA node on whose processors this process
 * may run when it first asks, with those of them. */
typedef struct GCCL_Device {
  size_t struct_bytes;        /* set by the caller to sizeof(GCCL_Device) */
  int32_t kind;               /* GCCL_DEVICE_CPU */
  int32_t numa, socket;       /* the operating system's numbers; -1: unknown */
  int32_t cores, threads;     /* physical cores, hardware threads */
  uint64_t memory_bytes;      /* of the whole NUMA node */
  char name[GCCL_NAME_BYTES]; /* the processor's model */
} GCCL_Device;

GCCL_API GCCL_Result GCCL_Device_count(int* count);
/* device: 0 .. count-1. */
GCCL_API GCCL_Result GCCL_Device_get(int device, GCCL_Device* info);
/* Binds the calling thread, and threads that it starts, to the device's processors. */
GCCL_API GCCL_Result GCCL_Device_bind(int device);
/* The device that the calling thread is bound to; -1 when it may run on several. */
GCCL_API GCCL_Result GCCL_Device_current(int* device);

/* What a machine or a cluster consists of. The caller owns it and frees it with GCCL_Topology_free; it never changes,
 * so any number of threads may read it. */
typedef struct GCCL_Topology_state* GCCL_Topology;

typedef struct GCCL_Topology_device {
  size_t struct_bytes; /* set by the caller to sizeof(GCCL_Topology_device) */
  int32_t kind;        /* GCCL_DEVICE_CPU, GCCL_DEVICE_GPU */
  int32_t node;        /* 0 .. nodes-1 */
  int32_t numa;        /* number on its node; -1: unknown */
  int32_t island; /* devices of one number are joined by the devices' own links (NVLink, xGMI, a processor's bus) */
  int32_t nic;    /* the nearest, an index for GCCL_Topology_get_nic; -1: none */
  int32_t rank;   /* as the description says; -1: it does not */
  char name[GCCL_NAME_BYTES];
} GCCL_Topology_device;

typedef struct GCCL_Topology_nic {
  size_t struct_bytes; /* set by the caller to sizeof(GCCL_Topology_nic) */
  int32_t node;
  int32_t index;         /* on its node, from 0: NICs of one index make a rail */
  int32_t numa;          /* -1: unknown */
  double bandwidth_GBps; /* one way; 0: unknown */
  char name[GCCL_NAME_BYTES];
} GCCL_Topology_nic;

/* This machine: a node with the devices of GCCL_Device_count and its physical network interfaces. */
GCCL_API GCCL_Result GCCL_Topology_discover(GCCL_Topology* out);
/* A file: GCCL's cluster description (JSON, docs/formats.md), or the XML that NCCL reads (NCCL_TOPO_FILE) and writes
 * (NCCL_TOPO_DUMP_FILE). The first character shows which of them it is. */
GCCL_API GCCL_Result GCCL_Topology_load(const char* path, GCCL_Topology* out);
/* The same from `bytes` bytes at `text`; `name` stands for the file in error texts, and files that the description
 * names are relative to its folder. */
GCCL_API GCCL_Result GCCL_Topology_parse(const char* text, size_t bytes, const char* name, GCCL_Topology* out);
GCCL_API GCCL_Result GCCL_Topology_counts(GCCL_Topology topology, int* nodes, int* devices, int* nics);
GCCL_API GCCL_Result GCCL_Topology_get_device(GCCL_Topology topology, int device, GCCL_Topology_device* info);
GCCL_API GCCL_Result GCCL_Topology_get_nic(GCCL_Topology topology, int nic, GCCL_Topology_nic* info);
/* Sets *topology to null. */
GCCL_API GCCL_Result GCCL_Topology_free(GCCL_Topology* topology);

/* ---- Errors and figures ---- */

/* A constant text such as "the ranks' calls differ". */
GCCL_API const char* GCCL_Error_string(GCCL_Result result);
/* What the last failed call of this thread was about; valid until the thread's next GCCL call; "" when none failed. */
GCCL_API const char* GCCL_Last_error(void);

/* Writes what this rank was doing, on all of its communicators: the latest 127 collectives of each, the oldest in
 * flight, and which messages are in flight and waited for. A path that ends in ".json" gets GCCL's form
 * (docs/formats.md), any other the pickle of PyTorch's flight recorder, for torchfrtrace; `gccl doctor` reads both.
 * With GCCL_DUMP in the environment the same is written when a communicator fails: the first, and later ones on which
 * calls have ended since. Local; any thread. Errors: GCCL_ERR_SYSTEM where the file cannot be written. */
GCCL_API GCCL_Result GCCL_Dump(GCCL_Comm comm, const char* path);

enum { GCCL_METRICS_KINDS = 16 };
typedef struct GCCL_Call_metrics {
  const char* name;       /* "allreduce", ...; null: no kind has this index, others may follow */
  uint64_t calls, failed; /* the caller's own; not those that splitting and the like are made of */
  uint64_t bytes;         /* of user data, counted as nccl-tests does */
  uint64_t time_ns;       /* from start to completion, summed over the calls that were timed */
  uint64_t time_ns_min, time_ns_max;
  uint64_t timed; /* calls that were timed: small ones are sampled */
} GCCL_Call_metrics;
typedef struct GCCL_Metrics {
  size_t struct_bytes; /* set by the caller to sizeof(GCCL_Metrics) */
  GCCL_Call_metrics calls[GCCL_METRICS_KINDS];
  uint64_t messages_sent, messages_received;
  uint64_t bytes_sent, bytes_received;        /* on all backends, those of splitting and the like among them */
  uint64_t plans_built, plans_reused;         /* schedules compiled, and calls that found theirs */
  uint64_t waits_yielded;                     /* times a wait gave up the processor */
  const char* algorithm[GCCL_METRICS_KINDS];  /* of the newest plan of each kind, by its name; null: none */
  const char* decided_by[GCCL_METRICS_KINDS]; /* who chose it: "the model", ... (docs/start.md) */
  uint64_t failures_noticed;                  /* times that calls on comm found ranks failed */
  uint64_t recoveries, ranks_lost;            /* times that comm has recovered, and ranks that it lost then */
  uint64_t calls_repeated, calls_handed_back; /* after that; handed back: GCCL_ERR_RANKS_CHANGED */
  uint64_t suspicions, suspicions_withdrawn;  /* of the job's detector: ranks that were silent, and those heard again */
  uint64_t reconnects;     /* TCP connections of comm that broke and were made anew (GCCL_LINK_LOST_MS) */
  uint64_t bytes_repeated; /* that were sent once more over these */
  uint64_t frames_damaged; /* that came over TCP with a wrong checksum, and were not delivered (GCCL_LINK_CHECK) */
  uint64_t links_slowed, links_recovered; /* times that a link between two ranks of comm became slow, and recovered; the
                                           * same on all ranks (GCCL_LINK_SLOW, docs/faults.md) */
  int32_t slow_link_from, slow_link_to;   /* of the links that are slow now the slowest, by rank; -1: none is */
  double slow_link_MBps, slow_link_expected_MBps; /* what it reached, in 10^6 bytes a second; 0: none is */
  uint64_t plans_changed; /* times that calls from then on were planned around other links than before */
} GCCL_Metrics;
/* Figures of comm since it was made. */
GCCL_API GCCL_Result GCCL_Get_performance_metrics(GCCL_Comm comm, GCCL_Metrics* metrics);

/* What a call would take, and how it would be carried out. */
typedef struct GCCL_Prediction {
  size_t struct_bytes;    /* set by the caller to sizeof(GCCL_Prediction) */
  double time_us;         /* by the model, of a call that runs alone; NaN where the algorithm has no closed form */
  double group_time_us;   /* of all calls asked about since GCCL_Group_start; outside a group time_us */
  const char* algorithm;  /* as gccl list algorithms names it; constant */
  const char* decided_by; /* "the model", "GCCL_TUNING_FILE", ... (docs/start.md); constant */
  char why[256];          /* how and why, in words; shortened where it is longer */
} GCCL_Prediction;
/* The prediction for a collective that is not made: nothing is sent, and no other rank needs to ask. `collective` is
 * its name, such as "allreduce"; `count` is what its function takes, of v-collectives the mean block. Between
 * GCCL_Group_start and GCCL_Group_end the calls asked about count as one group: those on one communicator run one after
 * the other, those on several, or of several ranks of this process, at the same time. Any thread; needs no operation to
 * end. */
GCCL_API GCCL_Result GCCL_Estimate(GCCL_Comm comm, const char* collective, size_t count, GCCL_Dtype dtype,
                                   GCCL_Prediction* prediction);

#ifdef __cplusplus
}
#endif

#endif

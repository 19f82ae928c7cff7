// Ranks that meet through files in a folder that all of them see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libgccl/bootstrap/bootstrap.hpp"

namespace gccl {

// All files' names begin with `prefix`. They appear by rename, so that nobody reads half a file:
//   PREFIX.hello.R.TOKEN   rank R (not 0) is here, and has drawn this token
//   PREFIX.job             rank 0 has drawn this job id, and has seen these tokens
//   PREFIX.ID.K.R.TOKEN    rank R's contribution to round K of the job with that id, with its size, and a proof that it
//                          knows the secret
//   PREFIX.ID.K.all        rank 0's answer, and the tokens of the job's ranks
// A rank accepts only a job file that holds its own token, and rank 0 only contributions to its own id, so all ignore
// what an earlier job left behind in the same place. One that contributes lives: where it gives another size, has
// another secret, or comes beside another process of the same rank, no rank starts. A rank removes its contribution
// once it has read the answer; rank 0 removes hellos and what other jobs have left once all have come, and answers once
// nobody needs them, and leaves the last one to a rank that does not run for seconds. One job at a time may use a
// prefix; its ranks may begin the next one there while one of them does not run.
//
// The files are one user's, which the system sees to. The proof is there because ranks that meet here may dial each
// other later, when one with another secret is refused: it is found at the start.
struct FileStore {
  std::string prefix;
  Rank rank = 0, size = 1;
  std::string secret = "";
};

// GCCL_ERR_INVALID_ARGUMENT when the prefix's folder is not there or cannot be written to.
Status open_file_store(const FileStore& store, std::unique_ptr<Exchange>* out);

}  // namespace gccl

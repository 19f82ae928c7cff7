// Where the members of a job that runs and processes that want to join it meet. One member listens there, and only
// while the members admit others; the others ask again and again.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "libgccl/bootstrap/store_url.hpp"

namespace gccl {

// The address of the job's TCP store; or where the member's ports would listen, whose addresses a file beside those of
// its file store names, PREFIX.join. The file holds a token, too: a process that has read it may join, where the job
// has no secret.
class JoinPlace {
 public:
  using Token = std::array<std::byte, 16>;  // zero at a TCP store

  // `address`: to listen on for a file store, as in GCCL_Config.
  static Status parse(const std::string& store, const std::string& secret, const std::string& address, JoinPlace* out);

  // ---- A member's ----

  // Whether a process of this machine can listen there: a TCP store's address is one of its own.
  bool is_here() const;
  // Names the place to those that look for it, until leave() with its token. Another member's stays: one that was
  // stopped may come here after the others have gone on without it.
  Status listen(Fd* listener, Token* token) const;
  void leave(const Token& token) const;

  // ---- Of one that joins ----

  // None: nobody admits anybody now.
  Status find(std::vector<SocketAddress>* at, Token* token) const;

  const std::string& store() const { return store_; }
  const std::string& secret() const { return secret_; }

 private:
  std::string file() const { return url_.prefix + ".join"; }

  std::string store_, secret_, address_;
  StoreUrl url_;
};

}  // namespace gccl

// The receives of one link: frames read from its streams, each straight to where its message goes.
#pragma once

#include <string>
#include <vector>

#include "libgccl/transports/tcp/data/completions.hpp"
#include "libgccl/transports/tcp/data/numbered_queue.hpp"
#include "libgccl/transports/tcp/data/staging.hpp"
#include "libgccl/transports/tcp/data/stream.hpp"

namespace gccl::tcp {

// What is said of a connection that the peer has ended.
inline constexpr const char* kClosed = "connection closed";

// Nothing is read before a receive waits for it, listen() apart: messages that come early stay in the kernel, whose
// flow control holds the sender back.
class Incoming {
 public:
  void post(GCCL_Transfer* t);
  bool empty() const { return queue_.empty(); }
  const GCCL_Transfer* front() const { return queue_.front(); }
  // The first receive's message, which must be there, comes over several streams where there are.
  bool over_several() const { return front()->bytes > Stream::kStripeBytes; }
  // Reads what is there; complete receives go to `done`. False: the stream failed, *problem says how.
  bool advance(Stream* stream, bool first_stream, Completions* done, Staging* staging, std::string* problem);
  // Nothing of the stream is read before a receive that is yet to come is there.
  bool held_up(const Stream& s) const {
    return queue_.empty() || (s.in_frame && !s.announced && !queue_.find(s.incoming.sequence));
  }
  // Whether the stream may yet bring what the first receive, which must be there, waits for: frames come in the order
  // of their messages, and only long messages come over several streams.
  bool may_bring(const Stream& s, bool first_stream) const;
  // Whether it has ended, and that receive waits for what it alone could bring: the beginning of its message, or the
  // rest of a part.
  bool cut_off(const Stream& s, bool first_stream) const;
  // Reads on all the same, for what the peer acknowledges. Requires held_up(). hear() comes to the next message at
  // most; listen() reads on through messages, up to a limit, which stay with the stream until they are received.
  bool hear(Stream* stream, std::string* problem);
  bool listen(Stream* stream, std::string* problem);
  // The next connection begins behind the last whole frame: forgets what has been read of later ones. Of streams that
  // are checked.
  void go_back(Stream* stream);
  // False when the transfer is not one of these.
  bool cancel(GCCL_Transfer* t) { return queue_.remove(t); }

 private:
  enum class Step { go_on, wait, failed };

  Step read_header(Stream* s, bool first_stream, std::string* problem);
  Step read_ahead(Stream* s, bool first_stream, std::string* problem);
  Step begin_payload(Stream* s, GCCL_Transfer* t, Completions* done, std::string* problem);
  Step store(Stream* s, GCCL_Transfer* t, std::string* problem);
  Step consume(Stream* s, GCCL_Transfer* t, Staging* staging, std::string* problem);
  Step consume_checked(Stream* s, GCCL_Transfer* t, std::string* problem);
  static Step check(Stream* s, std::string* problem);
  Step discard(Stream* s, Staging* staging, std::string* problem);

  NumberedQueue queue_;
  std::vector<std::byte> carry_;  // of the front receive: less than a grain, not yet consumed
  // Where frames are checked: of the front receive, the carry and the frame behind it, until that is whole.
  Staging held_;
};

}  // namespace gccl::tcp

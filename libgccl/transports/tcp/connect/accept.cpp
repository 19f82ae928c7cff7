#include "libgccl/transports/tcp/connect/accept.hpp"

#include <sys/socket.h>

#include "libgccl/base/status.hpp"

namespace gccl::tcp {
const char* objection(const ConnectionRequest& h, const PortIdentity& port) {
  if (h.to != port.rank) return "it means another rank";
  if (h.from >= port.size || h.from == port.rank) return "it says that it is a rank that is no peer";
  if (h.channel >= port.channels) return "it wants a channel that does not exist";
  // One side alone dials, so that both never do at once.
  if (h.kind == ConnectionRequest::Kind::stream && port.world_rank[h.from] >= port.world_rank[port.rank])
    return "it dials where it should be dialled";
  if (h.kind == ConnectionRequest::Kind::ask && port.world_rank[h.from] <= port.world_rank[port.rank])
    return "it asks to be dialled where it should dial";
  if (h.kind == ConnectionRequest::Kind::abort && !is_error(h.fault.result)) return "it aborts without a reason";
  if (h.kind == ConnectionRequest::Kind::abort && h.fault.peer >= port.size)
    return "it aborts because of a rank that does not exist";
  return nullptr;
}

Accept::Accept(Fd fd, const SocketAddress& who, const Context* context, bool last)
    : context_(context), who_(who), handshake_(Handshake::accept(context->secret)), last_(last) {
  fd_ = std::move(fd);
  events_ = EPOLLIN;
  deadline_ = begun_ + kPendingLimit;
}

PendingConnection::Next Accept::refuse(const std::string& why) {
  context_->refused(who_, why);
  return Next::over;
}

PendingConnection::Next Accept::turn_away(const std::string& why) {
  context_->turned_away(who_, why);
  return Next::over;
}

PendingConnection::Next Accept::ready() {
  // A watcher never says anything: it has left.
  if (watched_) return Next::over;
  switch (handshake_.advance(fd_.get())) {
    case Handshake::State::wants_read: events_ = EPOLLIN; return Next::go_on;
    case Handshake::State::wants_write: events_ = EPOLLOUT; return Next::go_on;
    case Handshake::State::failed:
      // A rank that ends while it dials, or a program that only looks whether the port is open.
      return handshake_.disconnected() ? turn_away(handshake_.error()) : refuse(handshake_.error());
    case Handshake::State::done: break;
  }
  ConnectionRequest request;
  if (!decode(handshake_.hello(), &request)) return refuse("its request is none of this protocol");
  if (request.nonce != context_->nonce) {
    answer(kNotHere);
    return refuse("it means a listener that was here before");
  }
  inbox_ = context_->find(request.communicator);
  // Peers learn where to dial from the address of the very port, so none can be earlier than it: this rank has left,
  // and the peer learns it at once.
  if (!inbox_) {
    answer(kNotHere);
    return turn_away("its communicator is not open here any more");
  }
  if (const char* why = objection(request, inbox_->identity())) return refuse(why);
  return accept(request);
}

void Accept::answer(std::byte answer) { (void)send(fd_.get(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

PendingConnection::Next Accept::accept(const ConnectionRequest& request) {
  // Before the dialling rank knows that it was heard, and may end.
  if (request.kind == ConnectionRequest::Kind::abort) inbox_->put(request.fault, true);
  // A peer that the abort did not come to would wait for ever. While that is on its way it counts, as it says why.
  if (request.kind != ConnectionRequest::Kind::abort && inbox_->aborted_to_all()) {
    answer(kNotHere);
    return turn_away("its communicator has failed here");
  }
  if (last_ && request.kind != ConnectionRequest::Kind::abort) {
    answer(kNoDescriptor);
    return refuse("no descriptor is left for it (see ulimit -n)");
  }
  if (send(fd_.get(), &kAccepted, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) return turn_away("it left");
  accepted_ = request.kind;
  switch (request.kind) {
    case ConnectionRequest::Kind::stream:
      set_up(fd_.get(), context_->settings);
      arrive(request.from, request.channel, {request.stream, request.streams, request.connection, request.fresh});
      return Next::over;
    case ConnectionRequest::Kind::abort: return Next::over;
    case ConnectionRequest::Kind::ask:
      if (request.connection > 0) {
        const StreamPlace place{{request.from, request.channel}, request.stream};
        if (context_->settings.mends() && inbox_->claim_again(place, request.connection))
          context_->dial(
              {Dial::again(inbox_, place, request.streams, SocketAddress::remote_end(fd_.get()), context_->settings)});
      } else if (inbox_->claim_for_peer(request.from, request.channel)) {
        auto targets = Dial::link(inbox_, request.from, request.channel, context_->settings);
        for (Dial::Target& t : targets) t.for_peer = true;
        context_->dial(std::move(targets));
      }
      return Next::over;
    case ConnectionRequest::Kind::leave: inbox_->put_leaving(request.from); return Next::over;
    case ConnectionRequest::Kind::watch: break;
  }
  watched_ = true;
  events_ = EPOLLIN;
  deadline_ = Clock::time_point::max();
  return Next::go_on;
}

// A peer that has had no answer dials again, and one that is refused does without.
PendingConnection::Next Accept::starved() noexcept {
  if (!accepted_) return Next::over;
  inbox_->put_out_of_memory();
  return *accepted_ == ConnectionRequest::Kind::stream ? hold() : Next::over;
}

PendingConnection::Next Accept::expired() { return refuse("it did not prove itself within 5 s"); }

}  // namespace gccl::tcp

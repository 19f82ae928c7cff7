// The measuring loop over Gloo: its TCP transport, its file store. One process for each rank:
//   bench_peer_gloo --control SOCKET --rank R --size N --store FOLDER --interface NAME --allreduce VARIANT
// VARIANT `ring` and `bcube` are gloo::allreduce (what torch.distributed calls); `ring_chunked` and `halving_doubling`
// are the older class interface, in place. reduce_scatter exists in the class interface only.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/peers/loop.hpp"

namespace {

using namespace gccl::bench;
using Reduce = void (*)(void*, const void*, const void*, std::size_t);

// Gloo matches messages by tag: one for each kind of call.
enum Tag : std::uint32_t { tag_barrier = 1, tag_allreduce, tag_allgather, tag_broadcast, tag_alltoall, tag_pingpong };

class GlooPeer final : public Peer {
 public:
  GlooPeer(int rank, int size, const std::string& store, const std::string& interface, std::string allreduce)
      : rank_(rank), size_(size), allreduce_(std::move(allreduce)) {
    gloo::transport::tcp::attr attr;
    attr.iface = interface;
    attr.ai_family = AF_INET;
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore files(store);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(std::chrono::seconds(120));
    context->connectFullMesh(files, device);
    context_ = context;
    barrier_ = std::make_unique<gloo::BarrierOptions>(context_);
    barrier_->setTag(tag_barrier);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { gloo::barrier(*barrier_); }
  bool reduces_in_place() const override { return true; }

  std::function<void()> bind(Kind kind, Buffers b) override {
    const std::size_t size = std::size_t(size_);
    switch (kind) {
      case Kind::allreduce: return bind_allreduce(b);
      case Kind::allgather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setInput(b.in, b.count);
        options->setOutput(b.out, b.count * size);
        options->setTag(tag_allgather);
        return [options] { gloo::allgather(*options); };
      }
      case Kind::reduce_scatter: {
        auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
            context_, std::vector<float*>{b.in}, int(b.count * size), std::vector<int>(size, int(b.count)));
        return [algorithm] { algorithm->run(); };
      }
      case Kind::broadcast: {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(b.out, b.count);
        options->setRoot(0);
        options->setTag(tag_broadcast);
        return [options] { gloo::broadcast(*options); };
      }
      case Kind::alltoall: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(b.in, b.count * size);
        options->setOutput(b.out, b.count * size);
        options->setTag(tag_alltoall);
        return [options] { gloo::alltoall(*options); };
      }
      case Kind::barrier: return [this] { barrier(); };
      case Kind::pingpong: return bind_pingpong(b);
    }
    return {};
  }

 private:
  std::function<void()> bind_allreduce(Buffers b) {
    if (allreduce_ == "ring_chunked" || allreduce_ == "halving_doubling") {
      std::shared_ptr<gloo::Algorithm> algorithm;
      const std::vector<float*> pointers{b.out};
      if (allreduce_ == "ring_chunked")
        algorithm = std::make_shared<gloo::AllreduceRingChunked<float>>(context_, pointers, int(b.count));
      else
        algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context_, pointers, int(b.count));
      return [=] {
        std::memcpy(b.out, b.in, b.count * sizeof(float));  // in place; the copy gives it the others' contract
        algorithm->run();
      };
    }
    auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setInput(b.in, b.count);
    options->setOutput(b.out, b.count);
    options->setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
    options->setAlgorithm(allreduce_ == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                : gloo::AllreduceOptions::Algorithm::RING);
    options->setTag(tag_allreduce);
    return [options] { gloo::allreduce(*options); };
  }

  std::function<void()> bind_pingpong(Buffers b) {
    std::shared_ptr<gloo::transport::UnboundBuffer> buffer =
        context_->createUnboundBuffer(b.out, b.count * sizeof(float));
    return [buffer, rank = rank_] {
      if (rank > 1) return;
      const auto send = [&] { buffer->send(1 - rank, tag_pingpong), buffer->waitSend(); };
      if (rank == 0) send();
      buffer->recv(1 - rank, tag_pingpong);
      buffer->waitRecv();
      if (rank == 1) send();
    };
  }

  int rank_, size_;
  std::string allreduce_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<gloo::BarrierOptions> barrier_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rank = std::stoi(option(argc, argv, "rank")), size = std::stoi(option(argc, argv, "size"));
    Control control(option(argc, argv, "control"));
    GlooPeer peer(rank, size, option(argc, argv, "store"), option(argc, argv, "interface"),
                  option(argc, argv, "allreduce"));
    const int status = serve(peer, control);
    peer.barrier();  // nobody closes while another still reads
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_peer_gloo: %s\n", error.what());
    return 2;
  }
}

// A smaller communicator of the ranks that are left.
#include <utility>

#include "libgccl/communicator/recovery/remaking.hpp"

namespace gccl {

Status Recovery::shrink(CommunicatorCore& parent, std::unique_ptr<CommunicatorCore>* out, std::uint64_t* flags) {
  class Shrinking : public Making {
   public:
    explicit Shrinking(const CommunicatorCore& parent) : parent_(parent) {}
    fault::Call call() const override { return fault::Call::shrink; }
    Watch::In in() const override { return Watch::In::shrink; }
    Status make(const Members&, Members m, Over& over, std::unique_ptr<CommunicatorCore>* made) override {
      return CommunicatorCore::create(parent_.team().world, std::move(m), over, made);
    }

   private:
    const CommunicatorCore& parent_;
  };
  Shrinking shrinking(parent);
  return remake(parent, shrinking, time_limit(parent.timeout_ms()), out, flags);
}

}  // namespace gccl

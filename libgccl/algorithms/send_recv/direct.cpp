// Send-receive along the ring of ranks: each sends its vector to the next and gets the one of the rank before, the
// point-to-point pattern of pipeline parallelism. Scratch: the vector, in place only, where it is saved before it is
// overwritten.
#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

Schedule direct_send_recv(Call c, View v, Share mine) {
  const Region in = input_of(c, v, mine), out = output_of(c, v, mine);
  if (v.all.size == 1) {
    co_yield copy(in, out);
    co_return;
  }
  const Region from = c.in_place ? Region{Buffer::scratch, 0, in.count} : in;
  if (c.in_place) co_yield copy(in, from);
  co_yield send(v.all[v.all.ahead(1)], from);
  co_yield recv(v.all[v.all.behind(1)], out);
}

Count direct_send_recv_scratch(const Call& c, const View& v, Share mine) {
  return c.in_place && v.all.size > 1 ? input_of(c, v, mine).count : 0;
}

Cost direct_send_recv_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  const Cost copied = m.copy(bytes);
  if (v.all.size == 1) return c.in_place ? 0 : copied;
  return (m.all.known() ? m.all.next->slowest : m.widest(v))(bytes) + (c.in_place ? copied : 0);
}

}  // namespace

constexpr Algorithm sendrecv_direct = {
    .name = "direct",
    .kind = Collective::sendrecv,
    .source = "nccl-tests, src/sendrecv.cu",
    .steps = "1",
    .bytes = "V",
    .make = direct_send_recv,
    .scratch = direct_send_recv_scratch,
    .cost = direct_send_recv_cost,
};

}  // namespace gccl

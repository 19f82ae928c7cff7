// Alpha-beta-gamma parameters of a machine as one rank sees it, for the closed forms of the algorithms.
// Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994); LogGP's overhead is part of alpha.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "libgccl/cost/in_step.hpp"
#include "libgccl/cost/on_demand.hpp"
#include "libgccl/cost/protocol.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl {

using Cost = double;  // nanoseconds

struct Hop {
  double alpha_ns = 0;          // one message's fixed time: both ends' overheads and the latencies on its way
  double beta_ns_per_byte = 0;  // inverse bandwidth of the narrowest link on its way
  Cost operator()(double bytes) const { return alpha_ns + bytes * beta_ns_per_byte; }
};

// One level of the two in-order binary trees.
struct TreeLevel {
  Hop one;                        // the slowest message alone
  double shared_ns_per_byte = 0;  // while all of the level are on their way, a parent's two among them

  // One of the two messages of each parent, whichever is the later; they start or are taken `gap_ns` apart.
  Cost later(double bytes, double gap_ns) const {
    return one.alpha_ns + std::max(bytes * shared_ns_per_byte, bytes * one.beta_ns_per_byte + gap_ns);
  }
};

// The hops of a ring, or of several at once, in the orders of so many channels, of which each carries as many bytes.
struct RingLoads {
  Rank channels = 0;
  Hop next;        // the mean message, with what the others of its ring take of its links
  Hop next_alone;  // the same, one message at a time
  Hop busiest;     // the mean latency, and the busiest link
  Hop together;    // the mean message, with what those of all rings take of its links
  Hop slowest;     // the slowest message alone
  // The same without the message to a call's root, which would close the ring: from the root on, and back to it.
  struct Chain {
    Hop next_alone, slowest;
    double ns_per_byte = 0;  // the busiest link's share of a byte
  } chain, back;

  // The first channel's ring, as others are in it.
  struct Way {
    double hops = 0;
    Hop around;             // the sum of all hops
    double run = 0;         // the longest row of hops that are none of the slowest ones
    Hop in_run;             // the mean of those
    double slowest_ns = 0;  // for a byte, of any hop
  } way;

  // The longest way of so many steps in one ring. What arrives goes on at once, so with each step a message is one hop
  // further, or where that takes longer the same hop carries the next one: T(h, s) = max(T(h, s - 1) + bytes, T(h - 1,
  // s - 1) + latency + bytes). The way begins at the first slow hop behind the longest run of others, and goes round
  // until it comes to that run; what steps are left it takes in there, or at the slow hop before it, or where ranks
  // handle each step's messages for so long.
  Cost longest_way(double steps, double bytes, Cost handling) const {
    if (way.hops <= 0) return steps * next(bytes);
    const Cost all = way.around(bytes), run = way.in_run(bytes);
    const double rounds = std::floor(steps / way.hops), rest = steps - rounds * way.hops, slow = way.hops - way.run;
    return rounds * all + std::min(rest, slow) * (all - way.run * run) / slow +
           std::max(0.0, rest - slow) * std::max({run, bytes * way.slowest_ns, handling});
  }

  // `steps` steps of each of the rings, of messages of so many bytes. The slowest hop is never done before it has
  // carried every step's bytes, and a rank handles and combines the messages of all rings one after the other.
  //
  // A message that leaves only once its receive is posted (`met`) waits for more: its receiver posts that when the
  // message before has come, is combined and goes on. With T(r, s) the end of step s on rank r that is T(r, s) =
  // max(T(r, s - 1), T(r - 1, s - 1)) + hop + combining, so the slowest hop's every step takes its whole latency.
  Cost operator()(double steps, double bytes, Cost combining, Cost gap_ns, bool met) const {
    const Cost in_turn = met ? steps * slowest(bytes) + combining : 0;
    return std::max({longest_way(steps, bytes, channels * gap_ns) + combining + (channels - 1) * gap_ns,
                     slowest.alpha_ns + steps * bytes * busiest.beta_ns_per_byte,
                     double(channels) * std::max(steps * gap_ns, combining), in_turn});
  }
};

// The hops among the members of a group while all of them send at once, where the machine's routes are known: what is
// shared (a node's bus, a NIC, a leaf's way up to the spine) is counted in each. Empty where they are not. Each is
// worked out when a form first asks for it: those of all forms for 2048 ranks take 0.2 s, a ring's 0.01 s.
struct LinkLoads {
  struct Shifts {
    std::vector<Hop> plain;   // [k]: each member sends to the one 2^k further on, cyclically; mean alpha, worst beta
    std::vector<Hop> rounds;  // [k]: the same after the shifts by 1, 2, ... 2^(k-1), each of which waits for what came
                              // in the one before: alpha is what this one adds to the longest way
    std::vector<Hop> turns;   // [k]: the same where each waits for its own message to have arrived, too
  };
  OnDemand<Shifts> shifts;
  OnDemand<std::vector<Hop>> exchange;  // [k]: each member exchanges with the one at its place xor 2^k; the slowest
                                        // message
  // [k]: as `exchange`, of those that are left when pairs fold to a power of two (folded.hpp).
  OnDemand<std::vector<Hop>> survivors;
  // [k]: round k of halving.hpp off powers of two, as Rounds takes it, and of the same backwards after that; else
  // empty.
  OnDemand<std::vector<Hop>> halving, doubling;
  struct Swing {             // of those (swing.hpp)
    std::vector<Hop> steps;  // [k]: what step k adds to the longest way
    double ns_per_byte = 0;  // the busiest link's share of a byte of each vector, on the way there
  };
  OnDemand<Swing> swing;
  struct Binomial {         // a binomial tree's messages, all down from member 0 or all up to it
    std::vector<Hop> hops;  // [k]: between each multiple of 2^(k+1) and the one 2^k further on; the slowest message
    // [k]: how long member 0's message waits for each byte of its message of level k + 1, whose links it shares.
    std::vector<double> behind_ns_per_byte;
    double ns_per_byte = 0;         // the busiest link's share of a byte of each of all of them
    double blocks_ns_per_byte = 0;  // the same where each carries a byte for each member of its subtree
    double both_ns_per_byte = 0;    // as ns_per_byte, while those of the other way are on theirs, too
    double empty_ns = 0;            // until the last one has arrived, all empty
    double excess_ns = 0;           // how much longer that is by the slowest message of each level
    // The same of a byte each, and of a byte for each member of a subtree, where nothing else takes time and a member's
    // messages pass one after the other: no more than these together is what bytes take.
    double in_turn_ns_per_byte = 0, blocks_in_turn_ns_per_byte = 0;
  };
  OnDemand<Binomial> binomial_down, binomial_up;
  // Both in-order trees (binary_tree.hpp) by level, k from the leaves, and the share of the busiest link of a byte of
  // each of their messages: of all members, up and down; and of all but member 0, which feeds their roots, down,
  // with what that takes of links in the share, not in the levels.
  struct Trees {
    std::vector<TreeLevel> levels;
    double ns_per_byte = 0;
    TreeLevel feed;  // member 0's two messages to the roots
  };
  OnDemand<Trees> trees, fed_trees;
  OnDemand<Hop> odd;  // members 1 and 2, 3 and 4, ..., the last and 0 exchange; the slowest message
  // The busiest link's share of a byte that each exchanges with both its neighbours, at once.
  OnDemand<double> neighbors_ns_per_byte;
  struct Next {  // each sends to the next one
    RingLoads ring;
    Hop slowest;  // the slowest message
  };
  OnDemand<Next> next;
  struct Fans {                                      // member 0's messages to all others, and theirs to it
    Hop out, in;                                     // the slowest message alone
    Hop out_mean;                                    // the mean message to another alone
    double in_first_ns = 0;                          // the least latency of those to it that the busiest link carries
    double out_ns = 0, in_ns = 0;                    // until the last one has arrived, and been taken, all empty
    double out_ns_per_byte = 0, in_ns_per_byte = 0;  // and the busiest link's share of each
    double out_in_order_ns_per_byte = 0;  // until the last one is out, where each waits on its way for those before it
  };
  OnDemand<Fans> fans;
  // By how much of what the busiest link carries messages to member 0 take longer that leave once it asks for them.
  OnDemand<double> gather_stretch;
  // The busiest link's share of a byte of each member's vector in recursive halving's reduce-scatter (halving.hpp),
  // where the nearest exchange the largest halves or the smallest; and with the binomial gather to member 0 after the
  // first.
  OnDemand<double> near_halving_ns_per_byte, far_halving_ns_per_byte, gathered_halving_ns_per_byte;
  OnDemand<bool> ring_in_way;  // what member 0 scatters leaves its node the way of a ring's messages
  struct Pairs {               // each member sends to every other one, in turns (turns.hpp)
    Hop mean;                  // the mean message of the member with the slowest ones
    Hop alone;                 // as if each of those were alone
  };
  OnDemand<Pairs> pairs;
  // By how much of what its busiest link carries that takes longer, as members wait for each other (exchange.hpp).
  struct Stretch {
    double one = 1;                   // of one channel
    std::array<double, 3> at_once{};  // of 2, 4, and 8 channels or more, in each of which they do; 0: nobody looked
    double of(double messages, Rank channels) const;
  };
  OnDemand<Stretch> stretch;

  bool known() const { return bool(shifts); }
  template <class H>
  static const H& over(const std::vector<H>& hops, Count distance) {
    return hops[std::min<std::size_t>(std::bit_width(std::max<Count>(distance, 1)) - 1, hops.size() - 1)];
  }
  Cost ring(double steps, double bytes, Cost combining, bool met) const {
    return next->ring(steps, bytes, combining, 0, met);
  }
};

struct CostModel {
  // A machine on which a message takes `alpha_ns` and each of its bytes `beta_ns_per_byte`, and nothing else takes
  // time.
  static CostModel bare(double alpha_ns, double beta_ns_per_byte, double element_bytes) {
    CostModel m;
    m.node = m.net = m.net_all = {.alpha_ns = alpha_ns, .beta_ns_per_byte = beta_ns_per_byte};
    m.element_bytes = element_bytes;
    return m;
  }

  Hop node;       // between two ranks of a node
  Hop net;        // between nodes, while one rank of each node sends
  Hop net_all;    // between nodes, while every rank of each node sends
  LinkLoads all;  // of all ranks in order
  // Of all ranks in the orders of 1, 2, 4, ... channels and of as many as have different orders; empty where routes are
  // not known.
  OnDemand<std::vector<RingLoads>> rings;
  LinkLoads inside;  // of the ranks of each node, on every node at once
  LinkLoads rail;    // of the ranks with one place on their nodes, on every place at once
  // The longest way through allgather/recursive_doubling.cpp: empty, and for a byte of each rank's block; empty where
  // routes are not known.
  OnDemand<Hop> doubling;
  // A byte's share of the busiest link while every node's ring hands a node's blocks round and every rail's ring one
  // on; empty where routes are not known.
  OnDemand<double> rings_ns_per_byte;
  // Where each node's ranks are behind a switch that multicasts and reduces: a message of such a step (group_step.hpp),
  // which takes a byte's share of each of its links. Of no meaning elsewhere.
  std::optional<Hop> node_switch;
  double overhead_ns = 0;          // part of alpha: how long a rank is busy starting one message
  double receive_overhead_ns = 0;  // part of alpha: and taking one that has arrived
  double combine_ns_per_byte = 0;  // gamma: reduction of one incoming byte
  double copy_ns_per_byte = 0;
  double element_bytes = 1;
  bool links_alone = false;       // of `parts`: all that takes time is what the busiest link carries
  double eager_bytes = INFINITY;  // a longer message leaves only once its receive is posted
  Protocol protocol;              // whose latencies and efficiencies the hops hold; the rest is counted in predicted()

  // The same machine where only one kind of thing takes time: handling messages; combining and copying; links inside
  // nodes of one bandwidth and another; the network. Empty where routes are not known. What takes longest in them
  // bounds how fast chunks follow each other when several channels are in different phases of an algorithm.
  OnDemand<std::vector<CostModel>> parts;
  static constexpr std::size_t kHandlingPart = 0, kMemoryPart = 1;

  double bytes(double count) const { return count * element_bytes; }
  bool met(double bytes) const { return bytes > eager_bytes; }
  // A message alone, no faster than its protocol lets one channel send.
  Cost in_channel(const Hop& hop, double bytes) const {
    const double least = protocol.channel_GBps > 0 ? 1 / protocol.channel_GBps : 0;
    return hop.alpha_ns + bytes * std::max(hop.beta_ns_per_byte, least);
  }
  // The least time between two messages of a rank that sends and receives as many.
  double exchange_gap_ns() const { return std::max(overhead_ns, receive_overhead_ns); }
  double combine(double bytes) const { return bytes * combine_ns_per_byte; }
  double copy(double bytes) const { return bytes * copy_ns_per_byte; }
  // Of what a rank has itself, to where the call wants it.
  double own_copy(const Call& c, double bytes) const { return c.in_place ? 0 : copy(bytes); }
  // The slowest hop of a pattern that crosses nodes at one place of each node (chains, shifts by one).
  const Hop& widest(const View& v) const { return v.nodes > 1 ? net : node; }
  // Where nodes but the last one are of different sizes, the smallest and the fullest one stand for all of them.
  bool stays(const View& v, Count distance) const {
    const auto fits = [&](Rank node) { return node % (2 * distance) == 0; };
    return v.nodes <= 1 || (v.by_node && fits(v.fullest) && (!v.members || fits(v.rails)));
  }
  // The hop of an exchange in aligned pairs (rank xor a power of two) in which every rank takes part. Pairs stay on
  // their node where blocks of twice the distance fit a node exactly.
  const Hop& at(const View& v, Count distance) const {
    if (all.known()) return LinkLoads::over(*all.exchange, distance);
    return stays(v, distance) ? node : v.rails > 1 ? net_all : net;
  }
  // The slowest hop while every rank sends to the one `distance` further on, cyclically: the last ones of each node
  // send to the next node, one rank of it for distance 1.
  const Hop& shift(const View& v, Count distance) const {
    if (all.known()) return LinkLoads::over(all.shifts->plain, distance);
    return v.nodes <= 1 ? node : (v.by_node && distance <= 1) || v.rails <= 1 ? net : net_all;
  }
  // The same in a sequence of shifts by powers of two; `turns`: where each step waits for its own message, too.
  const Hop& round(const View& v, Count distance, bool turns = false) const {
    if (all.known()) return LinkLoads::over(turns ? all.shifts->turns : all.shifts->rounds, distance);
    return shift(v, distance);
  }
  // `steps` steps of a ring of n ranks, `crossings` of whose hops lead `across` to another node; `combining` is the
  // time each message's way spends in reductions. What arrives goes on at once, so a message's way takes the sum of
  // different hops, not n times the slowest; but the slowest hop is never done before it has carried every step's
  // bytes.
  Cost ring(double n, double crossings, const Hop& across, double steps, double bytes, Cost combining) const {
    const Cost way = steps * (crossings * across(bytes) + (n - crossings) * node(bytes)) / n + combining;
    if (crossings <= 0) return way;
    if (met(bytes)) return std::max(way, steps * across(bytes) + combining);
    return std::max(way, across.alpha_ns + steps * bytes * across.beta_ns_per_byte);
  }
  // The rings of v.channels channels over all ranks at once, each with messages of so many bytes.
  Cost ring(const View& v, double steps, double bytes, Cost combining) const {
    if (rings) return channels(v)(steps, bytes, combining, exchange_gap_ns(), met(bytes));
    const double n = v.all.size, crossings = v.nodes > 1 ? v.nodes : 0, at_once = v.channels;
    // Each crosses on a rail of its own while there are rails, and passes nearly every rank.
    CostModel shared;
    shared.eager_bytes = eager_bytes;
    shared.node = {node.alpha_ns,
                   node.beta_ns_per_byte * std::max(1.0, v.nodes > 1 ? at_once - at_once / v.rails : at_once)};
    const Hop across{net.alpha_ns, std::max(net.beta_ns_per_byte, net_all.beta_ns_per_byte * at_once / v.rails)};
    return std::max(shared.ring(n, crossings, across, steps, bytes, combining),
                    at_once * std::max(steps * exchange_gap_ns(), combining));
  }
  // The same while all channels are in step: nobody combines before all first messages have arrived, so the link whose
  // channels are combined last has nothing to carry until then, and when all last ones have, they are combined one
  // after the other. In step a message comes round no faster than its mean hop with all others on it; for what that
  // takes longer than the busiest link's share, this link is idle, and so it is while a message waits for its receive
  // (`met`). Requires that routes are known.
  Cost ring_in_step(const View& v, double steps, double bytes, Cost combining) const {
    const RingLoads r = channels(v);
    const double alone = rings->front().busiest.beta_ns_per_byte, c = combining / steps;
    // Channels on the busiest link, and in the mean.
    const double own = rings->front().together.beta_ns_per_byte, mean = own > 0 ? r.together.beta_ns_per_byte / own : 1;
    const double share = std::max(alone > 0 ? r.busiest.beta_ns_per_byte / alone : 1, mean);
    const Cost busiest = bytes * r.busiest.beta_ns_per_byte, all_links = steps * busiest;
    const Cost latency = std::max(r.together(bytes) - busiest, met(bytes) ? r.slowest.alpha_ns : 0);
    const Cost idle =
        idle_in_step(share, steps, latency + c, std::max(exchange_gap_ns(), c), bytes * (share > mean ? alone : own));
    return std::max({r.longest_way(steps, bytes, 0) + combining,
                     r.busiest.alpha_ns + all_links + (r.channels - share + 2) * c + idle,
                     double(r.channels) * std::max(steps * exchange_gap_ns(), combining) + all_links / steps});
  }
  // Requires that routes are known.
  RingLoads channels(const View& v) const {
    for (const RingLoads& r : *rings)
      if (r.channels >= v.channels) return r;
    // Orders come round again, and the rest of a round loads its links in addition to the whole ones.
    RingLoads more = rings->back();
    const Rank rest = v.channels % more.channels;
    more.together.beta_ns_per_byte *= double(v.channels) / more.channels;
    more.busiest.beta_ns_per_byte *= v.channels / more.channels;
    more.chain.ns_per_byte *= v.channels / more.channels;
    more.back.ns_per_byte *= v.channels / more.channels;
    if (rest > 0) {
      const auto r = std::ranges::find_if(*rings, [&](const RingLoads& one) { return one.channels >= rest; });
      more.busiest.beta_ns_per_byte += r->busiest.beta_ns_per_byte;
      more.chain.ns_per_byte += r->chain.ns_per_byte;
      more.back.ns_per_byte += r->back.ns_per_byte;
    }
    more.channels = v.channels;
    return more;
  }
};

}  // namespace gccl

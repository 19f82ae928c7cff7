#!/usr/bin/env bash
# planner.sh GCCL SOURCE_FOLDER: a scenario's plans on a cluster with "backends" are those of real communicators there.
# Rank 0 of real ranks, which plan as if each had a processor, says its plans by GCCL_LOG=2
# (tests/scenario/scenario_backends.cpp has the other ranks' ones; where they differed, the bench would find wrong
# elements or hang); nodes are names that ranks of one machine are given.
set -euo pipefail
gccl=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
collectives="allreduce reduce broadcast allgather reduce_scatter alltoall gather scatter sendrecv barrier"
# The bench gives blocks of different lengths, whose plans are named without a size: the algorithm alone is compared.
lengths="alltoallv"

# longest RANKS, step RANKS: the largest size, and how many times the one before it each is. With more real ranks the
# longest calls would take most of this test's time: they are made where GCCL_WIDE is set, as scripts/long does.
longest() {
  if [ "$1" -le 4 ] || [ -n "${GCCL_WIDE:-}" ]; then echo 7864320; elif [ "$1" -le 8 ]; then echo 983040; else echo 122880; fi
}
step() { if [ "$1" -gt 8 ] || [ -n "${GCCL_WIDE:-}" ]; then echo 8; elif [ "$1" -le 4 ]; then echo 32; else echo 16; fi; }

# runs RANKS: all collectives, of all sizes.
runs() {
  local c bytes all=""
  for c in $collectives $lengths; do
    bytes=",\"dtype\":\"u8\",\"bytes\":{\"from\":240,\"to\":$(longest "$1"),\"factor\":$(step "$1")}"
    [ "$c" != barrier ] || bytes=""
    all+="${all:+,}{\"collective\":\"$c\"$bytes,\"algorithms\":[\"auto\"]}"
  done
  echo "$all"
}

# planned RANKS NODES BACKENDS [PARAMETERS]: a line for each plan, as a scenario has it.
planned() {
  local per_node=$(($1 / $2)) fabric=""
  [ "$2" = 1 ] || fabric=',"fabric":{"kind":"switch"}'
  cat >"$folder/cluster.json" <<JSON
{"schema":"gccl/cluster/1","name":"here","parameters":{"base":"${4:-$source/cost-models/host.json}","backends":"$3",
 "links":{"nic":{"bandwidth_GBps":1.25,"latency_ns":7000}}},
 "nodes":[{"count":$2,"cards":$per_node,"inside":{"kind":"switch","link":"memory"},
           "nics":{"count":1,"bus":"memory","port":"nic"}}]$fabric}
JSON
  play cluster.json "$1" "$(runs "$1")"
}

# play CLUSTER RANKS RUNS: what is planned there.
play() {
  echo "{\"schema\":\"gccl/scenario/1\",\"name\":\"here\",\"cluster\":\"$1\",\"ranks\":[$2],\"runs\":[$3]}" >"$folder/scenario.json"
  "$gccl" run "$folder/scenario.json" --quiet --csv "$folder/rows.csv"
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    { kind = $at["collective"]; count = kind ~ /^(barrier|alltoallv)$/ ? "-" : $at["count"]
      print kind, count, $at["algorithm"], $at["chunks"], $at["channels"], $at["window"] }' "$folder/rows.csv" | sort -u
}

# real RANKS NODES BACKENDS [PARAMETERS]: the same from real ranks; a plan that is compiled keeps no window.
real() {
  local per_node=$(($1 / $2)) all
  all=$(tr ' ' ',' <<<"$collectives $lengths")
  # shellcheck disable=SC2016  # the ranks' shells expand them
  "$gccl" launch -n "$1" -- sh -c 'GCCL_HOST=node$((GCCL_RANK / $1)); export GCCL_HOST; shift; exec "$@"' sh "$per_node" \
    env GCCL_LOG=2 GCCL_OVERSUBSCRIBED=0 GCCL_BACKENDS="$3" GCCL_PARAMETERS="${4:-}" "$gccl" bench --collective "$all" --dtype u8 --min-bytes 240 --max-bytes "$(longest "$1")" \
    --factor "$(step "$1")" --iterations 1 --warmup 0 --out-of-place >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
  sed -nE 's/ of ([0-9]+) elements? of 1 bytes? on / \1 on /; s/plan: ([a-z_]+) on /plan: \1 - on /
    s/.*plan: ([a-z_]+) ([0-9-]+) on [0-9]+ ranks?: ([^,]+), ([0-9]+) chunks?, ([0-9]+) channels?, (window )?([a-z0-9]+).*/\1 \2 \3 \4 \5 \7/p' \
    "$folder/log" | sort -u
}

# Planned, and not what ranks do. What the bench itself exchanges is among the real ones.
missing() {
  awk 'NR == FNR { real[$0]; next }
    { compiled = $0; sub(/[0-9]+$/, "compiled", compiled); if (!($0 in real) && !(compiled in real)) print }' \
    "$folder/real" "$folder/planned"
}

# Ranks that share memory are planned so, whatever nodes a layout makes of them.
"$gccl" launch -n 4 -- env GCCL_LOG=2 "$gccl" bench --ranks-per-node 2 --dtype u8 --min-bytes 1000 --max-bytes 1000 \
  --iterations 1 --warmup 0 --out-of-place >"$folder/log" 2>&1
grep -qE 'plan: allreduce of 1000 elements .*: direct, 1 chunk' "$folder/log" || { grep plan: "$folder/log"; exit 1; }

# compare JOB: the plans in two files.
compare() {
  local plans missing
  plans=$(wc -l <"$folder/planned")
  [ "$plans" -ge 30 ] || { echo "$1: only $plans plans"; exit 1; }
  missing=$(missing)
  [ -z "$missing" ] || { printf '%s (ranks, nodes, backends): planned, and not what ranks do\n%s\nranks do\n' "$1" "$missing"
    cut -d' ' -f1,2 <<<"$missing" | while read -r plan; do grep "^$plan " "$folder/real" || true; done; exit 1; }
  echo "$1: $plans plans agree"
}

for job in "2 1 shm,tcp" "5 1 shm,tcp" "12 1 shm,tcp" "4 1 tcp" "4 4 tcp" "4 2 shm,tcp" "6 2 shm,tcp" "8 8 shm,tcp" "3 1 tcp,shm"; do
  # shellcheck disable=SC2086  # three words
  planned $job >"$folder/planned"
  # shellcheck disable=SC2086
  real $job >"$folder/real"
  compare "$job"
done

# Costs in place of the compiled-in ones (GCCL_PARAMETERS): plans are other ones, and the same in scenarios and on ranks.
cat >"$folder/other.json" <<JSON
{"schema":"gccl/parameters/1","name":"other","base":"$source/cost-models/host.json","transports":{
  "tcp":{"net":{"alpha_ns":400000,"ns_per_byte":0.1},"net_all":{"alpha_ns":900000,"ns_per_byte":0.3},"overhead_ns":200},
  "tcp-loopback":{"node":{"alpha_ns":90000,"ns_per_byte":0.1},"overhead_ns":80000},
  "shared-memory":{"node":{"alpha_ns":70000,"ns_per_byte":0.1},"overhead_ns":60000}}}
JSON
for job in "12 1 shm,tcp" "4 1 tcp" "6 2 shm,tcp"; do
  # shellcheck disable=SC2086
  planned $job >"$folder/usual"
  # shellcheck disable=SC2086
  planned $job "$folder/other.json" >"$folder/planned"
  others=$(comm -13 "$folder/usual" "$folder/planned" | wc -l)
  [ "$others" -ge 3 ] || { echo "$job: other costs, but only $others other plans"; exit 1; }
  # shellcheck disable=SC2086
  real $job "$folder/other.json" >"$folder/real"
  compare "$job with other costs, $others other plans"
done

# calibrated: what gccl calibrate writes, asked again and longer, as it says, where other work made its times tell nothing.
calibrated() {
  local seconds
  for seconds in 1 4 16; do
    # shellcheck disable=SC2016
    if "$gccl" launch -n 4 -- sh -c 'GCCL_HOST=node$((GCCL_RANK / 2)); export GCCL_HOST; exec "$@"' sh "$gccl" calibrate \
      -o "$folder/measured.json" --cluster-out "$folder/measured-cluster.json" --seconds "$seconds" --max-bytes 256KiB --factor 8 \
      >/dev/null 2>"$folder/log"; then return; fi
    grep -q "measure longer (--seconds)" "$folder/log" || break
  done
  cat "$folder/log" >&2
  return 1
}

# The calibrated cluster's plans are those of its ranks.
calibrated
play measured-cluster.json 4 "$(runs 4)" >"$folder/planned"
real 4 2 shm,tcp "$folder/measured.json" >"$folder/real"
compare "4 2 shm,tcp as calibrated"

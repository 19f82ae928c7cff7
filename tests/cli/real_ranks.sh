#!/usr/bin/env bash
# real_ranks.sh GCCL: `gccl run --engine real` inflicts timelines on real ranks and comes to what the simulation says (a
# difference is exit code 1), refuses what it cannot do before anything starts, and leaves nothing behind when interrupted.
set -euo pipefail
gccl=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "real_ranks: $*"; exit 1; }

scenario() {  # NAME RUN...: four ranks
  local name=$1; shift
  local IFS=,
  echo "{\"schema\": \"gccl/scenario/1\", \"name\": \"$name\", \"cluster\": \"dgx-h100-superpod-2048\", \"ranks\": 4, \"runs\": [$*]}" >"$work/$name.json"
}
run() {  # COLLECTIVE FAULTS EXPECTATIONS [POLICY [MORE]]
  echo "{\"collective\": \"$1\", \"bytes\": \"16KiB\", \"algorithms\": \"auto\", \"repeats\": 4, \"faults\": [$2],
         \"recovery\": {\"policy\": \"${4:-shrink}\", \"detection_us\": \"200ms\"}, \"expect\": {$3}${5:-}}"
}
lived='"completed": true, "correct": true, "exactly_once": true, "no_false_alarm": true'
crash='{"kind": "rank_crash", "rank": 2, "after": {"rank": 2, "operations": 2}}'

scenario crashes \
  "$(run allreduce "$crash" "$lived, \"dead\": [2], \"max_detection_us\": \"200ms\"")" \
  "$(run broadcast '{"kind": "rank_crash", "rank": 0, "after": {"rank": 0, "steps": 3}}' "$lived, \"dead\": [0]")" \
  "$(run alltoall "$crash" '"completed": false, "dead": [2], "no_false_alarm": true' fail)" \
  "$(run allreduce '{"kind": "rank_crash", "rank": 2, "at_us": "5ms"}' '"completed": false, "dead": [2]' fail ', "compute_us": "2ms"')" \
  "$(run allgather '{"kind": "pause", "rank": 1, "at_us": "2ms", "for_us": "20ms"}' "$lived, \"dead\": []" shrink ', "compute_us": "1ms"')"
for transport in tcp shm; do
  "$gccl" run "$work/crashes.json" --engine real --transport $transport --quiet || fail "crashes over $transport: exit code $?"
done
# Others take the places of ranks that crash: a spare, the same rank started again, and fewer than crash.
scenario replaced \
  "$(run allreduce "$crash" "$lived, \"dead\": [2]" rejoin)" \
  "$(run broadcast '{"kind": "rank_crash", "rank": 0, "after": {"rank": 0, "operations": 1}}' "$lived, \"dead\": [0]" 'spare", "spares": 2, "replace_after_us": "10ms')"
for transport in tcp shm; do
  "$gccl" run "$work/replaced.json" --engine real --transport $transport --quiet || fail "replaced over $transport: exit code $?"
done
"$gccl" run faults/spares-run-out --engine real --quiet || fail "spares run out: exit code $?"
# A fault of several ranks strikes where the first of them has ended before.
scenario once_more "$(run allreduce '{"kind": "rank_crash", "rank": 1, "at_us": "70ms"}, {"kind": "rank_crash", "ranks": [1, 2], "at_us": "200ms"}' \
  "$lived, \"dead\": [1, 2]" shrink ', "compute_us": "60ms"')"
"$gccl" run "$work/once_more.json" --engine real --quiet || fail "a second crash of one of two ranks: exit code $?"
# A rank that is stopped is stopped for longer by another fault, or crashes, without going on first.
stop='{"kind": "pause", "rank": 1, "at_us": "25ms", "for_us": "30ms"}'
scenario stopped \
  "$(run allreduce "$stop, {\"kind\": \"pause\", \"rank\": 1, \"at_us\": \"40ms\", \"for_us\": \"40ms\"}" "$lived, \"dead\": []" shrink ', "compute_us": "20ms"')" \
  "$(run allreduce "$stop, {\"kind\": \"rank_crash\", \"rank\": 1, \"at_us\": \"40ms\"}" "$lived, \"dead\": [1]" shrink ', "compute_us": "20ms"')"
"$gccl" run "$work/stopped.json" --engine real >"$work/out" || fail "a stopped rank is hit: exit code $?, $(cat "$work/out")"
[ "$(grep -o 'rank 1 \(stops\|crashes\|goes on\)' "$work/out" | cut -d' ' -f3- | paste -sd,)" = "stops,stops,goes on,goes on,stops,crashes,goes on" ] ||
  fail "what hits a stopped rank waits for it: $(cat "$work/out")"
# What strikes nobody in the simulation, as its rank has not begun by then, or the run is over, strikes nobody here. Who
# begins later is spared.
late='{"kind": "late_start", "rank": 1, "at_us": "10ms"}'
scenario spared \
  "$(run allgather "$late, {\"kind\": \"card_loss\", \"card\": 1, \"at_us\": 0}" "$lived, \"dead\": []" shrink ', "compute_us": "10ms"')" \
  "$(run alltoall '{"kind": "rank_crash", "ranks": [0, 3], "at_us": "20ms", "after": {"rank": 3, "epochs": 1}}' "$lived, \"dead\": []")" \
  "$(run allreduce "$late, {\"kind\": \"rank_crash\", \"ranks\": [0, 1], \"at_us\": \"2ms\"}" "$lived, \"dead\": [0]" shrink ', "compute_us": "20ms"')"
"$gccl" run "$work/spared.json" --engine real --quiet || fail "ranks that the simulation spares: exit code $?"
# An operation that a crash interrupts in its computing is carried out anew, and what was to strike in it does.
scenario anew "$(run allreduce '{"kind": "rank_crash", "rank": 0, "at_us": "22ms"}, {"kind": "rank_crash", "rank": 1, "at_us": "36ms"}' \
  "$lived, \"dead\": [0, 1]" shrink ', "compute_us": "20ms"')"
"$gccl" run "$work/anew.json" --engine real --quiet || fail "a crash in an operation that is carried out anew: exit code $?"
# A system reports at once who has ended, however far times are stretched: here before the last operation. At once is
# when it has taken the process to pieces, which takes milliseconds where that has as much memory as with sanitizers.
scenario reported "$(run broadcast '{"kind": "rank_crash", "rank": 2, "at_us": "61ms"}' '"completed": false, "dead": [2]' fail ', "compute_us": "20ms"')"
"$gccl" run "$work/reported.json" --engine real --quiet || fail "a crash while the last operation is computed: exit code $?"
# One rank is started again and joins while another one crashes, which is waited for, too.
scenario both "$(run alltoall '{"kind": "rank_crash", "rank": 1, "at_us": "22ms"}, {"kind": "rank_crash", "rank": 0, "at_us": "2ms", "after": {"rank": 2, "agreements": 1}}' \
  "$lived, \"dead\": [0, 1]" rejoin ', "compute_us": "20ms"')"
for transport in tcp shm; do
  "$gccl" run "$work/both.json" --engine real --transport $transport >"$work/out" || fail "two join one after the other: exit code $?"
  grep -q ': 4 ranks are at work' "$work/out" || fail "those that are left did not wait for both: $(cat "$work/out")"
done
# One system says who has ended: the last one goes on.
scenario most "$(run allreduce '{"kind": "rank_crash", "ranks": [0, 1, 2], "at_us": "5ms"}' "$lived, \"dead\": [0, 1, 2]" shrink ', "compute_us": "3ms"')"
"$gccl" run "$work/most.json" --engine real --quiet || fail "three of four ranks crash: exit code $?"
# A rank that is slow to stop is hit by a second stop first; both end.
twice='{"kind": "pause", "rank": 1, "at_us": "7ms", "for_us": "20ms"}, {"kind": "pause", "rank": 1, "at_us": "7001us", "for_us": "20ms"}'
scenario twice "$(run allreduce "$twice" "$lived, \"dead\": []" 'shrink", "limit_us": "600ms' ', "compute_us": "5ms"')"
if [ -z "${GCCL_TEST_SANITIZED:-}" ]; then
  echo '#include <sys/syscall.h>
  #include <unistd.h>
  extern "C" ssize_t write(int file, const void* data, size_t bytes) {
    const ssize_t written = syscall(SYS_write, file, data, bytes);
    if (bytes > 250 && bytes < 500) usleep(10000);  // a report
    return written;
  }' | c++ -shared -fPIC -x c++ - -o "$work/slow.so"
  LD_PRELOAD=$work/slow.so "$gccl" run "$work/twice.json" --engine real --quiet || fail "two stops at once: exit code $?"
fi
# What strikes in the simulation before all is healed strikes here, though a process that joins took longer: a stop, which
# ends as early, and a crash.
scenario healed "$(run allreduce "$crash"', {"kind": "pause", "rank": 1, "at_us": "35ms", "for_us": "500ms"},
  {"kind": "rank_crash", "rank": 3, "at_us": "36ms"}' "$lived, \"dead\": [2, 3]" 'rejoin", "heal_us": "37ms", "limit_us": "20s' ', "compute_us": "10ms"')"
sed -i 's/"200ms"/"2s"/' "$work/healed.json"  # its times are real ones
"$gccl" run "$work/healed.json" --engine real >"$work/out" || fail "faults before the healing: exit code $?, $(cat "$work/out")"
if ! grep -q 'rank 1 goes on' "$work/out" || grep -q 'rank_crash' "$work/out"; then fail "what is healed: $(cat "$work/out")"; fi
# One that begins late and before the healing lasts as long as in the simulation, too: 310 ms.
scenario lasts "$(run allreduce "$crash"', {"kind": "pause", "rank": 0, "after": {"rank": 0, "operations": 3}, "for_us": "500ms"}' \
  "$lived, \"dead\": [2]" 'rejoin", "heal_us": "400ms", "limit_us": "20s' ', "compute_us": "20ms"')"
sed -i 's/"200ms"/"2s"/' "$work/lasts.json"
"$gccl" run "$work/lasts.json" --engine real >"$work/out" || fail "a stop until the healing: exit code $?, $(cat "$work/out")"
awk '{ ms = $1 * ($2 == "s" ? 1000 : 1) } /rank 0 stops/ { began = ms } /rank 0 goes on/ { lasted = ms - began }
     END { exit !(lasted >= 300) }' "$work/out" || fail "a stop until the healing is shorter: $(cat "$work/out")"
# A rank that is slowed after its operations is as fast as the others when that ends.
scenario slow "$(run allreduce '{"kind": "straggler", "rank": 1, "slowdown": 5000, "for_us": "2ms"}' "$lived, \"dead\": []" 'shrink", "limit_us": "300ms')"
"$gccl" run "$work/slow.json" --engine real --quiet || fail "a straggler for a time: exit code $?"
# An expectation that does not hold is seen.
scenario wrong "$(run allreduce "$crash" '"dead": [1]')"
code=0; "$gccl" run "$work/wrong.json" --engine real --json "$work/result.json" >"$work/out" || code=$?
if [ $code != 1 ] || ! grep -q 'found \[2\]' "$work/out"; then fail "a wrong expectation: $code, $(cat "$work/out")"; fi
grep -q 'found \[2\].*; this machine was up to [0-9.e-]* ms late with what was due' "$work/out" ||
  fail "nothing says how late the machine was: $(cat "$work/out")"
# Nothing is said that nobody has measured or that ranks plan by themselves, and which times these are.
if grep -qE '"(chunks|channels|window|planned|protocol|protocol_planned)":' "$work/result.json"; then
  fail "plans of the simulation are said to be real ranks': $(cat "$work/result.json")"
fi
grep -q '"messages": null' "$work/result.json" || fail "messages of real ranks are counted: $(cat "$work/result.json")"
grep -q '"carried_by": "tcp"' "$work/result.json" || fail "nothing says what carried the messages: $(cat "$work/result.json")"
grep -q 'real engine over tcp$' "$work/out" || fail "nothing says what carried the messages: $(cat "$work/out")"
grep -q '^real times, divided by 10,' "$work/out" || fail "the stretch is not reported: $(cat "$work/out")"

# Faults of the network need one, and are refused without.
scenario cut "$(run allreduce '{"kind": "partition", "ranks": [3], "at_us": "2ms"}' "$lived, \"dead\": [3]" shrink ', "compute_us": "1ms"')"
refused() {  # TEXT ARGUMENT...
  local text=$1 code=0; shift
  "$gccl" run "$@" >"$work/out" 2>&1 || code=$?
  if [ $code != 2 ] || ! grep -qF -- "$text" "$work/out"; then fail "$*: exit code $code, $(cat "$work/out")"; fi
}
refused "take --namespaces" "$work/cut.json" --engine real
refused "take --transport tcp --namespaces" "$work/cut.json" --engine real --transport shm
refused "expected --engine real with it" "$work/cut.json" --transport tcp
refused "this is the step of an LLM" llama3-405b-16k --transport shm
refused "this is the step of an LLM" llama3-405b-16k --namespaces
refused "real ranks do not run twice alike" "$work/crashes.json" --engine real --seeds 1..2
scenario late "$(run allreduce '{"kind": "late_start", "rank": 1, "at_us": "60ms"}' "$lived")"
refused "a start 0.3 of the detection time or more after the others" "$work/late.json" --engine real
refused "at most 64 ranks" faults/straggler-2048 --engine real
scenario of_a_spare "$(run allreduce '{"kind": "rank_crash", "rank": 2, "after": {"rank": 4, "steps": 3}}' "$lived" 'spare", "spares": 2, "wire": "datagrams')"
refused "found rank 4, a spare, of which nobody knows where it begins" "$work/of_a_spare.json" --engine real
# What ranks would not do is not asked of them: they plan by themselves, but for the algorithm of each collective.
for stated in '"channels": 2' '"lanes": 2' '"window": 4' '"chunks": 4, "channels": 2'; do
  scenario planned "$(run allreduce "$crash" "$lived" shrink ", $stated")"
  refused "ranks plan it by themselves; expected none stated" "$work/planned.json" --engine real
done
scenario planned "$(run allreduce "$crash" "$lived" shrink ', "protocol": "LL"')"
refused 'protocol: found "LL", which is the cluster'"'"'s' "$work/planned.json" --engine real
sequence() {  # ALGORITHM ALGORITHM: of two all-reduces
  scenario sequence "{\"sequence\": [{\"collective\": \"allreduce\", \"bytes\": \"16KiB\", \"algorithm\": \"$1\"},
    {\"collective\": \"allgather\", \"bytes\": \"16KiB\", \"algorithm\": \"direct\"},
    {\"collective\": \"allreduce\", \"bytes\": \"8B\", \"algorithm\": \"$2\"}], \"payload\": \"verify\",
    \"expect\": {\"correct\": true}}"
}
sequence ring recursive_doubling
refused 'one algorithm for each collective, found "recursive_doubling" for allreduce here and "ring" before' \
  "$work/sequence.json" --engine real
sequence ring ring
"$gccl" run "$work/sequence.json" --engine real --quiet || fail "a sequence with one algorithm for each: exit code $?"
# A partition, and damage that TCP's checksum misses.
for run in "$work/cut.json" faults/corruption-connections; do
  code=0; "$gccl" run "$run" --engine real --namespaces --quiet >"$work/out" 2>&1 || code=$?
  [ $code = 0 ] || { [ $code = 2 ] && grep -q "cannot be inflicted here" "$work/out"; } ||
    fail "$run: exit code $code, $(cat "$work/out")"
done

# Ranks on networks of their own that meet by files need no place on a disk.
scenario again "$(run allreduce "$crash" "$lived" rejoin)"
code=0; TMPDIR=$work/none "$gccl" run "$work/again.json" --engine real --namespaces --quiet >"$work/out" 2>&1 || code=$?
[ $code = 0 ] || { [ $code = 2 ] && grep -q "cannot be inflicted here" "$work/out"; } ||
  fail "ranks that meet by files: exit code $code, $(cat "$work/out")"

# Ranks that hear nothing of each other's agreement do not come to one.
scenario unagreed "$(run allreduce "{\"kind\": \"agreement_loss\", \"probability\": 1}, $crash" '"completed": true' 'shrink", "limit_us": "600ms')"
code=0; "$gccl" run "$work/unagreed.json" --engine real --namespaces --quiet >"$work/out" 2>&1 || code=$?
{ [ $code = 1 ] && grep -q 'completed; found rank [0-3] hangs in epoch 1' "$work/out"; } ||
  { [ $code = 2 ] && grep -q "cannot be inflicted here" "$work/out"; } ||
  fail "an agreement of which all is lost: exit code $code, $(cat "$work/out")"

# Ranks that have not finished at the limit hang. That they end when they are asked to breaks no promise.
scenario limited "$(run allreduce '' '"completed": true' 'shrink", "limit_us": "15ms' ', "compute_us": "5ms"')"
code=0; "$gccl" run "$work/limited.json" --engine real --quiet >"$work/out" 2>&1 || code=$?
if [ $code != 1 ] || ! grep -q 'completed; found rank [0-3] hangs in epoch 1' "$work/out" || grep -q promises "$work/out"; then
  fail "a limit that is too short: exit code $code, $(cat "$work/out")"
fi

# The processes of a run that is started with GCCL_REAL_RANKS_TEST=$$: itself, a child for the point, four ranks.
ours() { { grep -lzxF "GCCL_REAL_RANKS_TEST=$$" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3; }
await_ranks() {
  for _ in $(seq 600); do [ "$(ours | wc -l)" -ge 6 ] && break; sleep 0.05; done  # long, for sanitizers
  [ "$(ours | wc -l)" -ge 6 ] || fail "the ranks of a long run do not start"
  sleep 0.3
}
# A rank that ends as it should not is shown with what it had said, whether its log is looked at or not; the others, whose
# logs say something, too, are not.
for looks in '' ', "link_slow": 4'; do
  scenario ended "$(run allreduce '' '"completed": true' "shrink\"$looks, \"wire\": \"connections" ', "compute_us": "300ms"')"
  GCCL_REAL_RANKS_TEST=$$ "$gccl" run "$work/ended.json" --engine real --quiet >"$work/out" 2>"$work/said" &
  job=$!
  await_ranks
  rank=$(pgrep -P "$(pgrep -P $job)" | head -n 1)
  { seq 2000; echo "gccl error: these are its last words"; } >>"/proc/$rank/fd/2"
  kill -ABRT "$rank"
  code=0; wait $job || code=$?
  [ $code != 0 ] || fail "a rank that ends by itself: exit code 0, $(cat "$work/out")"
  grep -qE 'rank [0-3] was ended by signal 6' "$work/out" "$work/said" || fail "nobody has ended: $(cat "$work/out" "$work/said")"
  grep -qx 'rank [0-3]: gccl error: these are its last words' "$work/said" || fail "its last words are lost: $(tail -n 20 "$work/said")"
  others=$(grep -E '^rank [0-3]: ' "$work/said" | cut -d: -f1 | sort -u | wc -l)
  [ "$others" = 1 ] || fail "others are shown that have nothing to do with it: $(tail -n 20 "$work/said")"
  { grep -qE '^rank [0-3]: \([0-9]+ bytes before\)$' "$work/said" && [ "$(wc -l <"$work/said")" -lt 1500 ]; } ||
    fail "more than the end of a log is shown: $(tail -n 20 "$work/said")"
done

# What the machine refuses is no internal error; a rank that crashes before all are connected is one.
code=0
(ulimit -n 14 && exec "$gccl" run "$work/ended.json" --engine real --quiet) >"$work/out" 2>"$work/said" || code=$?
{ [ $code = 3 ] && grep -q 'engine "real".*Too many open files' "$work/said" && ! grep -q 'internal error' "$work/said"; } ||
  fail "with few descriptors: exit code $code, $(cat "$work/out" "$work/said")"
if [ -z "${GCCL_TEST_SANITIZED:-}" ]; then
  echo '#include <signal.h>
  extern "C" int listen(int, int) noexcept { return raise(SIGSEGV); }' | c++ -shared -fPIC -x c++ - -o "$work/crash.so"
  code=0
  LD_PRELOAD=$work/crash.so "$gccl" run "$work/ended.json" --engine real --quiet >"$work/out" 2>"$work/said" || code=$?
  { [ $code = 3 ] && grep -q 'internal error: .*not started: rank [0-3] was ended by signal 11' "$work/said"; } ||
    fail "a crash before all are connected: exit code $code, $(cat "$work/out" "$work/said")"
fi

# A rank that writes for ever does not take all memory: 256 MB are written while the coordinator, which keeps their end,
# looks after the ranks. A block has 512 bytes.
GCCL_REAL_RANKS_TEST=$$ "$gccl" run "$work/ended.json" --engine real --quiet >"$work/out" 2>"$work/said" &
job=$!
await_ranks
rank=$(pgrep -P "$(pgrep -P $job)" | head -n 1)
{
  { yes "as much as it can" || true; } | head -c 256000000  # two processes: its time is short
  echo
  echo "gccl error: these are its last words"
} >>"/proc/$rank/fd/2"
kept() { stat -L -c '%s %b' "/proc/$rank/fd/2"; }
for _ in $(seq 100); do
  read -r bytes blocks < <(kept)
  [ "$blocks" -lt 4096 ] && break
  sleep 0.02
done
if [ "$bytes" -lt 200000000 ] || [ "$blocks" -ge 4096 ]; then fail "a log of $bytes bytes takes $blocks blocks of 512 bytes"; fi
kill -ABRT "$rank"
wait $job && fail "a rank that ends by itself: exit code 0, $(cat "$work/out")"
grep -qx 'rank [0-3]: gccl error: these are its last words' "$work/said" || fail "its last words are lost: $(tail -n 20 "$work/said")"

# Real ranks look at all of their links, also where their cards are on one node, which simulated ones do not.
scenario one_node "$(run allreduce '' "$lived, \"slow_links\": [[0, 1]]" 'shrink", "link_slow": 4, "wire": "connections')"
refused "found ranks 0 and 1 of one node, where no links are looked at; expected ranks of two" "$work/one_node.json"
code=0; "$gccl" run "$work/one_node.json" --engine real >"$work/out" 2>&1 || code=$?
if [ $code != 1 ] || ! grep -q 'slow links are \[\[0,1\]\]; found none for' "$work/out"; then
  fail "slow links of one node on real ranks: exit code $code, $(cat "$work/out")"
fi

# Interrupted, and killed: no process, no segment.
scenario long "$(run allreduce "$crash" "$lived" shrink ', "compute_us": "10s"')"
segments() { find /dev/shm -maxdepth 1 -name 'gccl-*' | sort; }
before=$(segments)
for signal in INT KILL; do
  for transport in tcp shm; do
    GCCL_REAL_RANKS_TEST=$$ setsid "$gccl" run "$work/long.json" --engine real --transport $transport --quiet >/dev/null 2>&1 &
    job=$!
    await_ranks
    kill -$signal $job
    wait $job || true
    for _ in $(seq 100); do [ -z "$(ours)" ] && break; sleep 0.05; done
    [ -z "$(ours)" ] || fail "processes are left after $signal"
  done
done
# The end of a session, which nohup has all of them ignore, ends nobody.
scenario ignored "$(run allreduce "$crash" "$lived" shrink ', "compute_us": "100ms"')"
(trap '' HUP && exec env GCCL_REAL_RANKS_TEST=$$ setsid "$gccl" run "$work/ignored.json" --engine real --quiet) >"$work/out" 2>&1 &
job=$!
await_ranks
kill -HUP -- -$job
wait $job || fail "an ignored SIGHUP: exit code $?, $(cat "$work/out")"
# Killed where they meet by files: no folder.
scenario meet "$(run allreduce "$crash" "$lived" rejoin ', "compute_us": "10s"')"
mkdir "$work/tmp"
GCCL_REAL_RANKS_TEST=$$ TMPDIR=$work/tmp setsid "$gccl" run "$work/meet.json" --engine real --namespaces --quiet >"$work/out" 2>&1 &
job=$!
for _ in $(seq 600); do
  if [ "$(ours | wc -l)" -ge 6 ] || ! kill -0 $job 2>/dev/null; then break; fi
  sleep 0.05
done
if kill -KILL $job 2>/dev/null; then
  wait $job || true
  for _ in $(seq 100); do [ -z "$(ours)" ] && break; sleep 0.05; done
  [ -z "$(ours)" ] || fail "processes are left that meet by files"
  [ -z "$(ls -A "$work/tmp")" ] || fail "left by a run that was killed: $(ls "$work/tmp")"
else
  grep -q "cannot be inflicted here" "$work/out" || fail "ranks that meet by files: $(cat "$work/out")"
fi
# What other jobs make there meanwhile they take away again.
left() { comm -13 <(echo "$before") <(segments); }
made=$(left)
for _ in $(seq 200); do
  [ -z "$made" ] && break
  sleep 0.05
  made=$(comm -12 <(echo "$made") <(left))
done
[ -z "$made" ] || fail "left in /dev/shm: $made"

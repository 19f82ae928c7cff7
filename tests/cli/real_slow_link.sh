#!/usr/bin/env bash
# A slow link between real ranks, which all find, name and plan around; skipped, saying so, where none can be made. Where
# processors are short of time, so is the device through which the ranks' frames go, and other links are slow, too.
# Usage: real_slow_link.sh GCCL
set -euo pipefail
code=0
said=$("$1" run faults/slow-link-avoided --engine real --namespaces --quiet 2>&1) || code=$?
[ -z "$said" ] || echo "real_slow_link: $said"
[ $code = 2 ] && [[ $said == *"cannot be inflicted here"* ]] && exit 77
exit $code

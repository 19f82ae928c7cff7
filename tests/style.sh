#!/usr/bin/env bash
# style.sh SOURCE_FOLDER: the layout of C and C++ is .clang-format's, and shellcheck has nothing to say of the scripts. Without
# clang-format 14 or shellcheck (other versions lay out otherwise) it skips itself: 77.
set -euo pipefail
cd "$1"
for tool in clang-format-14 shellcheck; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done

mapfile -t sources < <(find libgccl sim cli pmpi nccl_tuner tests bench examples scripts -name build -prune -o \
                         \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' \) -print)
[ ${#sources[@]} -gt 400 ] || { echo "only ${#sources[@]} sources found"; exit 1; }
mapfile -t scripts < <(grep -lIrE '^#!.*[/ ](ba)?sh$' check quickstart .ci scripts tests bench examples --exclude-dir=build)
[ ${#scripts[@]} -ge 12 ] || { echo "only ${#scripts[@]} scripts found"; exit 1; }

failed=0
clang-format-14 --dry-run --Werror "${sources[@]}" || failed=1
shellcheck "${scripts[@]}" || failed=1
[ $failed -eq 0 ] || echo "clang-format-14 -i FILE puts a file right"
exit $failed

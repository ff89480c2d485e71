#!/bin/bash
# completions_shells.sh SHELL: completion in zsh or fish, by the shell itself.
. "$(dirname "$0")/lib.sh"
: "${COLBENCH:?}" "${COLCHECK:?}" "${COLJOB:?}"

shell=$1
here=$(cd "$(dirname "$0")" && pwd)
scripts=$here/../../src/tools/completions
command -v "$shell" >/dev/null || { echo "$shell is not installed"; exit 77; }

mkdir "$work/bin" "$work/home" "$work/here"
for tool in "$COLRUN" "$COLBENCH" "$COLCHECK" "$COLJOB"; do ln -s "$(realpath "$tool")" "$work/bin"; done
export PATH=$work/bin:$PATH HOME=$work/home
cd "$work/here" || exit 1
touch job.conf hosts

offers_zsh() { timeout -k 1 "$hangs" zsh -f "$here/offered.zsh" "$scripts" "$@" 2>"$err"; }
# A tab divides a word from what is said about it.
offers_fish() {
  # shellcheck disable=SC2016 # words for fish
  timeout -k 1 "$hangs" fish -c 'source $argv[1]; for line in $argv[2..]; echo (complete -C $line | string replace -r "\t.*" ""); end' \
    "$scripts/col.fish" "$@" 2>"$err"
}

lines=() expected=()
# completes LINE EXPECTED…: with the cursor at the end of the line.
completes() {
  lines+=("$1")
  shift
  expected+=("$*")
}
completes 'colrun --no' --node-rank
completes 'colrun --bi' --bind-to
completes 'colrun -n 4 --label --label-format x --exit-p' --exit-policy
completes 'colrun --stacks' --stacks-on-failure --stacks-on-timeout
completes 'colrun --bind-to n' none numa
completes 'colrun -n ' auto cpu gpu
completes 'colrun -n4 --stdin ' 0 all none
completes 'colrun --output f' file=
completes 'colrun --config ' hosts job.conf
completes 'colrun --env COLTES' COLTEST_TAG
completes 'colrun -n 2 mktem' mktemp
completes 'colrun -- mktem' mktemp
completes 'colrun -n 2 cat j' job.conf
completes 'colrun -n 2 cat --bi'
completes 'colrun -n 2 cat job.conf : --n' --np --nproc-per-node
completes 'colrun -n 2 cat job.conf : --bi'
completes 'colrun -n 2 cat job.conf : -n 3 mktem' mktemp
completes 'colrun -n 2 cat job.conf : -n 3 cat j' job.conf
completes 'colbench allre' allreduce
completes 'colbench noi' noise
completes 'colbench help tu' tune
completes 'colbench compare --min' --min-effect
completes 'colbench allreduce --cache c' cold
completes 'colbench allreduce --json j' job.conf
completes 'colcheck --fa' --faults --fault-start
completes 'colcheck --only exac' exact
completes 'coljob ' dump ps stacks top why
completes 'coljob ps --' --after --dir --help --help-all --json --output --version
completes 'coljob why jo' job.conf
# Fish offers the whole word, zsh what follows the '='.
if [ "$shell" = fish ]; then
  completes 'colrun --bind-to=n' --bind-to=none --bind-to=numa
  completes 'colrun --output file=j' file=job.conf
else
  completes 'colrun --bind-to=n' none numa
  completes 'colrun --output file=j' job.conf
fi

mapfile -t offered < <("offers_$shell" "${lines[@]}")
[ ! -s "$err" ] || fail "$shell says something"
for i in "${!lines[@]}"; do
  [ "$(tr ' ' '\n' <<<"${offered[i]:-}" | sort -u | paste -sd ' ')" = "$(tr ' ' '\n' <<<"${expected[i]}" | sort -u | paste -sd ' ')" ] ||
    fail "'${lines[i]}' is completed by '${offered[i]:-}' instead of '${expected[i]}'"
done
nothing_left

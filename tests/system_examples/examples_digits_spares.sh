#!/usr/bin/env bash
# One of four ranks is killed, and a spare takes its place with the state of the others: the losses are those of a training
# that nobody disturbed, to the last bit that is printed. The same with another process in place of the lost one.
. "$(dirname "$0")/lib.sh"

epochs=8 steps=13  # of an epoch: twelve batches and the test
seed=${COLTEST_SEED:-$RANDOM$RANDOM}
RANDOM=$((seed % 32768))
echo "COLTEST_SEED=$seed"
arguments=(--epochs $epochs --seed 3 --no-save)
trainer 4 "${arguments[@]}" >undisturbed
epochs_of undisturbed >expected

# replaced RANK STEP COLRUN'S OPTION…: rank 0 says what it did; where it is another one, what its predecessor did counts as well.
replaced() {
  local rank=$1 step=$2
  shift 2
  echo "rank $rank is lost in step $step ($*)"
  # A process of the job's own ranks alone has the fault: the one that follows is to live.
  timeout --kill-after=5 90 "$COLRUN" -n 4 "$@" bash -c '
    [ -z "${COL_RANK:-}" ] || export COL_FAULT=$0
    exec "$@"' "kill:rank=$rank,op=$((step + 5)),group=default" "$DIGITS_TRAINER" "${arguments[@]}" --survive >out 2>err ||
    fail "exit code $?: $(cat out err)"
  grep -q "^colrun: rank $rank .* was killed by SIGKILL" err || fail "the killed rank is not named: $(cat err)"
  local epoch=$(((step - 1) / steps + 1)) place=$(((step - 1) % steps + 1))
  grep -qE "^4 (of 4 )?ranks go on from step $place of epoch $epoch(, with another rank 0)?\$" out || fail "not from step $place of epoch $epoch: $(cat out err)"
  tail -n 1 out | grep -q "^test accuracy .* after $epochs epochs on 4 ranks\$" || fail "not all epochs: $(tail -n 3 out)"
  epochs_of out | sort -n -u -k 1,1 >found
  cmp expected found || fail "other losses than undisturbed: $(paste -d ' ' expected found)"
}
replaced $((1 + RANDOM % 3)) $((1 + RANDOM % (epochs * steps))) --spares 1
replaced 0 $((1 + RANDOM % (epochs * steps))) --spares 1
replaced 2 $((3 * steps)) --spares 1      # in the test after an epoch
replaced 0 $((3 * steps + 1)) --spares 2  # before the first step of the next

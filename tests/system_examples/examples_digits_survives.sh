#!/usr/bin/env bash
# One of eight ranks is killed at a random step: the seven others go on from the last step that all of them have, and come to
# the losses of a training that nobody disturbed. The same with restarts from a checkpoint.
. "$(dirname "$0")/lib.sh"

epochs=12 steps=13  # of an epoch: twelve batches and the test
seed=${COLTEST_SEED:-$RANDOM$RANDOM}
RANDOM=$((seed % 32768))
echo "COLTEST_SEED=$seed"
arguments=(--epochs $epochs --seed 3)
trainer 8 "${arguments[@]}" --no-save >undisturbed
epochs_of undisturbed >expected

# killed RANK STEP: of the steps of the whole training, counted from 1; rank 0 has printed what it did before.
killed() {
  local rank=$1 step=$2
  # Before the first step, the ranks agree that all can begin, and four things of rank 0 are broadcast.
  local fault="kill:rank=$rank,op=$((step + 5)),group=default"
  echo "rank $rank is killed in step $step"
  COL_FAULT=$fault timeout --kill-after=5 60 "$COLRUN" -n 8 --keep-going "$DIGITS_TRAINER" "${arguments[@]}" --no-save \
    --survive >out 2>err && fail "a killed rank is no failure: $(cat err)"
  grep -q "^colrun: rank $rank .* was killed by SIGKILL" err || fail "the killed rank is not named: $(cat err)"
  local epoch=$(((step - 1) / steps + 1)) place=$(((step - 1) % steps + 1))
  # A step that some of them have done is done again by all, or it is not: both are right.
  grep -qE "^7 of 8 ranks go on from step $place of epoch $epoch\$" out || fail "not from step $place of epoch $epoch: $(cat out)"
  tail -n 1 out | grep -q "^test accuracy .* after $epochs epochs on 7 ranks\$" || fail "not all epochs: $(tail -n 3 out)"
  epochs_of out >found
  near expected found 1e-3 || fail "other losses than undisturbed: $(paste -d ' ' expected found)"
}
killed $((1 + RANDOM % 7)) $((1 + RANDOM % (epochs * steps)))
killed 0 $((1 + RANDOM % (epochs * steps)))
killed 3 $((4 * steps))  # in the test after an epoch
killed 5 $((4 * steps + 1))
killed 0 $((epochs * steps + 1))  # when all that is left to do is to say so

# One after another: the second one dies in the group of seven, whose calls are counted anew.
timeout --kill-after=5 60 "$COLRUN" -n 8 --keep-going bash -c '
  case $COL_RANK in
    2) export COL_FAULT=kill:rank=2,op=40 ;;
    6) export COL_FAULT=kill:rank=6,op=60 ;;
  esac
  exec "$0" "$@"' "$DIGITS_TRAINER" "${arguments[@]}" --no-save --survive >out 2>err && fail "two killed ranks are no failure"
grep -q '^6 of 7 ranks go on from step' out || fail "not six of seven: $(cat out err)"
tail -n 1 out | grep -q "on 6 ranks\$" || fail "not six: $(cat out err)"
epochs_of out >found
near expected found 1e-3 || fail "other losses with six"

# ---- All again from the last checkpoint. The second start has fewer steps before it than the rank has lived through.
step=$((steps * epochs / 2 + 1 + RANDOM % (steps * epochs / 4)))
rank=$((RANDOM % 8))
echo "rank $rank is killed near step $step, and all start again"
COL_FAULT="kill:rank=$rank,op=$((step * 15 / 13)),group=default" timeout --kill-after=5 60 "$COLRUN" -n 8 --max-restarts 1 \
  "$DIGITS_TRAINER" "${arguments[@]}" --model model --continue >out 2>err || fail "exit code $?: $(cat out err)"
grep -q '^colrun: restarting all ranks (1 of 1 restarts)' err || fail "no restart: $(cat err)"
tail -n 2 out | grep -q "^test accuracy .* after $epochs epochs on 8 ranks\$" || fail "not all epochs: $(tail -n 3 out)"
epochs_of out | sort -n -u -k 1,1 >found
near expected found 1e-3 || fail "other losses after a restart"

# What does not go together.
trainer 1 --survive --continue >out 2>err && fail "--survive --continue is taken"
grep -q 'digits_trainer: --survive: does not go with --device cuda or --continue' err || fail "$(cat err)"

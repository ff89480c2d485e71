#!/usr/bin/env bash
# A rank is killed in mid-training, again and again: the job is started anew, goes on from its last checkpoint, and comes to
# the same model, bit for bit, as a training that nobody disturbed.
. "$(dirname "$0")/lib.sh"

arguments=(--epochs 100 --seed 3)
trainer 2 "${arguments[@]}" --model undisturbed.model >undisturbed

# The moments are arbitrary; a kill that comes after the end does nothing, so until one has come: an earlier one.
for milliseconds in 1000 700 400 300 200 150 100; do
  rm -f model
  timeout --kill-after=5 120 "$COLRUN" -n 2 --max-restarts 100 --inject "kill:1@${milliseconds}ms" \
    "$DIGITS_TRAINER" "${arguments[@]}" --model model --continue >out 2>err || fail "exit code $?: $(cat err)"
  cmp model undisturbed.model || fail "the model is not that of a training that nobody disturbed"
  restarts=$(grep -c '^colrun: restarting all ranks' err) || restarts=0
  # Trained before the first kill, and gone on from there.
  [ "$restarts" -gt 0 ] && awk '$1 == "digits_trainer:" { start++ } $1 == "epoch" && start == 1 { trained = $2 }
    $1 == "epoch" && start == 2 && !first { first = $2 } END { exit !(trained > 1 && first > 1 && first >= trained) }' out && break
done
[ "$restarts" -gt 0 ] || fail "no kill came in time: $(cat err)"
grep -q '^colrun: rank 1 (.*) was killed by SIGKILL' err || fail "the killed rank is not named: $(cat err)"
grep '^epoch' out | awk '{ print $2 }' | sort -n | uniq -c | awk '$1 > 2 { bad = 1 } END { exit bad || $2 != 100 }' ||
  fail "epochs were trained again and again: $(cat out)"
tail -n 2 out | grep -q '^test accuracy .* after 100 epochs on 2 ranks$' || fail "not 100 epochs: $(tail -n 3 out)"
printf 'killed %d times at %d ms\n' "$restarts" "$milliseconds"

# It is at its end already: nothing is left to train, and nothing changes.
trainer 2 "${arguments[@]}" --model model --continue >out
! grep -q '^epoch' out || fail "trained beyond the end"
cmp model undisturbed.model || fail "the model changed without training"
# More epochs: it goes on. Another number of ranks may.
trainer 3 --epochs 101 --model model --continue >out
[ "$(grep -c '^epoch' out)" -eq 1 ] || fail "not one more epoch: $(cat out)"

#!/usr/bin/env bash
# The main job as a newcomer runs it: eight ranks learn the digits, and the model is written.
. "$(dirname "$0")/lib.sh"

trainer 8 >out || fail "ended with $?: $(cat out)"
cat out
accuracy=$(awk '/^test accuracy/ {print $3}' out)
awk -v a="$accuracy" 'BEGIN {exit !(a >= 0.95 && a <= 1)}' || fail "test accuracy is '$accuracy', expected 0.95 or more"
grep -qE '^digits_trainer: 8 ranks over (shm|gloo), 1438 training and 359 test images' out ||
  fail "the first line is not as documented"
[ "$(grep -c '^epoch ' out)" -eq 15 ] || fail "expected 15 epochs"
[ "$(ls)" = "$(printf 'digits.model\nout')" ] || fail "expected one new file, digits.model: $(ls)"

# The model alone, looked at by one process, is as good as it was.
again=$("$DIGITS_TRAINER" --resume digits.model --epochs 0 --no-save | awk '/^test accuracy/ {print $3}')
[ "$again" = "$accuracy" ] || fail "the saved model has accuracy '$again', it had $accuracy"

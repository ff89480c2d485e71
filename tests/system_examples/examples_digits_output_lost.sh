#!/usr/bin/env bash
# Output that cannot be written is a failure: said once, on stderr, with exit code 1, and the model is written first.
. "$(dirname "$0")/lib.sh"

# expect_lost WHAT CODE
expect_lost() {
  [ "$2" -eq 1 ] || fail "$1: exit code $2, expected 1: $(cat err)"
  [ "$(grep -c '^digits_trainer: standard output cannot be written' err)" -eq 1 ] || fail "$1: it says: $(cat err)"
}

# A pipe that nobody reads, in a program that was started without SIGPIPE.
mkfifo pipe
exec 3<>pipe 4>pipe 3>&-
got=0
(trap '' PIPE; exec timeout --kill-after=5 60 "$DIGITS_TRAINER" --epochs 1 >&4 2>err) || got=$?
expect_lost "a pipe without a reader" $got
got=0
(trap '' PIPE; exec "$DIGITS_TRAINER" --help >&4 2>err) || got=$?
expect_lost "--help into a pipe without a reader" $got
exec 4>&-

# No standard output at all. What is printed does not end in a file that would have got its number.
for arguments in "--epochs 0 --model alone.model" --version; do
  got=0
  # shellcheck disable=SC2086 # a list of words
  COL_LOG=info COL_LOG_FILE=log timeout --kill-after=5 60 "$DIGITS_TRAINER" $arguments >&- 2>err || got=$?
  expect_lost "no stdout, '$arguments'" $got
done
grep -q '^col.*a world of one' log || fail "nothing is logged, so nothing could end in the log"
! grep -qv '^col' log || fail "the output ended in the log: $(cat log)"
got=0
timeout --kill-after=5 60 "$COLRUN" -n 3 sh -c 'exec "$0" --epochs 1 --model ranks.model >&-' "$DIGITS_TRAINER" \
  >out 2>err || got=$?
expect_lost "three ranks without stdout" $got
[ ! -s out ] || fail "three ranks without stdout printed: $(cat out)"

for model in digits.model alone.model ranks.model; do
  trainer 1 --resume $model --epochs 0 --no-save >out 2>&1 || fail "$model: $(cat out)"
done
grep -q '^test accuracy .* after 1 epoch on 1 rank$' out || fail "one epoch is not called so: $(cat out)"

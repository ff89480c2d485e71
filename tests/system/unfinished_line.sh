#!/bin/bash
# Text without a newline: whole lines in files and pipes, however slowly they come; a prompt shows soon on a terminal.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 1 printf 'no newline'
printf 'no newline' | cmp - "$out" || fail "the text is not as it was"
expect_exit 0 "$COLRUN" -n 3 printf 'text'
printf 'text\ntext\ntext' | cmp - "$out" || fail "the ranks' texts are not lines"

# Two ranks write a line in parts, each part when colrun has read those before: it has passed on a later word of rank 2.
parts='for part in 1 2 3; do
  if [ $RANK = 2 ]; then
    await test -e "$0/0.$part" -a -e "$0/1.$part"
    echo "read $part"
    await grep -q "read $part" "$1"
    : >"$0/2.$part"
  else
    printf "part $part"; printf "part $part" >&2
    : >"$0/$RANK.$part"
    await test -e "$0/2.$part"
  fi
done
[ $RANK = 2 ] || { echo; echo >&2; }'
line='part 1part 2part 3'
expect_whole() { # FILE NUMBER WHERE
  grep -v '^read' "$1" | cmp - <(yes "$line" | head -n "$2") || fail "torn lines $3"
  rm -f "$work"/[0-2].[1-3]
}
expect_exit 0 "$COLRUN" -n 3 bash -c "$parts" "$work" "$out"
expect_whole "$out" 2 "on stdout"
expect_whole "$err" 2 "on stderr"
"$COLRUN" -n 3 bash -c "$parts" "$work" "$out" 2>&1 | cat >"$out"
expect_whole "$out" 4 "where both streams are one"
expect_exit 0 "$COLRUN" -n 3 --output "file=$work/rank.%r" --tee bash -c "$parts" "$work" "$out"
for rank in 0 1; do expect_whole "$work/rank.$rank" 2 "in a file"; done
expect_whole "$out" 2 "beside a file"
# A rank that dies in the middle of a line.
expect_exit 137 "$COLRUN" -n 2 -l --keep-going bash -c '
  printf half; echo "read $RANK" >&2; await grep -q "read $RANK" "$1"
  [ $RANK = 1 ] || kill -KILL $$
  await grep -q "^\[0\] half$" "$0"; echo " and half"' "$out" "$err"
printf '[0] half\n[1] half and half\n' | cmp - "$out" || fail "the words of a killed rank"
# Half a line of 200,000 bytes, then nothing: the rest of it says what it belongs to, and nobody waits for it.
expect_exit 0 timeout 20 "$COLRUN" -n 2 bash -c 'if [ $RANK = 1 ]; then await test -e "$0/long"; echo short; exit; fi
  head -c 100000 /dev/zero | tr "\0" x; : >"$0/long"; await grep -q "^short" "$1"; head -c 100000 /dev/zero | tr "\0" y; echo' "$work" "$out"
sed 's/xx*/X/; s/yy*/Y/' "$out" | cmp - <(printf 'X [line continues]\nshort\n[line continued] Y\n') || fail "a long line"
[ "$(tr -dc xy <"$out" | wc -c)" -eq 200000 ] || fail "bytes are lost"
# Where nobody else writes, bytes that are no lines pass at once: the answer comes only after the question.
mkfifo "$work/question" "$work/answer"
timeout 20 "$COLRUN" -n 1 sh -c 'printf "?"; head -c 1 >"$0/answered"' "$work" <"$work/answer" >"$work/question" 2>"$err" &
pid=$!
exec 4>"$work/answer" 5<"$work/question"
[ "$(head -c 1 <&5)" = '?' ] || fail "no question"
printf '!' >&4
exec 4>&- 5<&-
expect_status 0 $pid
[ "$(cat "$work/answered")" = '!' ] || fail "no answer"

# A prompt on a terminal: the answer comes only after it was seen.
type script >/dev/null 2>&1 || { echo "script(1) is missing: no terminal to test a prompt with"; nothing_left; exit 77; }
export work
write_program "$work/rank" <<'R'
[ "$RANK" = 0 ] || exit 0
printf 'name? '
read -r name
echo "hello $name"
R
for options in '' -l; do
  rm -f "$work/keys"
  mkfifo "$work/keys"
  : >"$out"
  timeout -k 1 30 script -qefc "stty -echo; \"\$COLRUN\" -n 2 $options \"\$work/rank\"" "$out" <"$work/keys" >/dev/null 2>"$err" &
  pid=$!
  exec 4>"$work/keys"
  wait_until 10 "the prompt" grep -q 'name? ' "$out"
  echo you >&4
  expect_status 0 $pid
  exec 4>&-
  expect_in "$out" '^(\[0\] )?name\? hello you'
done
nothing_left

#!/bin/bash
# -x, --env-file, --env-remove and --rank-env: what ranks get, and who wins.
. "$(dirname "$0")/lib.sh"

cat >"$work/file" <<'F'
# a comment

FROM_FILE=plain text
export EXPORTED='quoted text '
BOTH=file
F
export HERE='from here' DOOMED=1 DOOMED_TOO=2 KEPT=3 PER_RANK=outer
expect_exit 0 "$COLRUN" -n 3 --env-file "$work/file" -x BOTH=option -x 'NEW=a=b c' -x HERE -x EMPTY= \
  --env-remove 'DOOMED*' --rank-env 'PER_RANK=%l of %w' --rank-env 'CORE=%R%%' sh -c 'env -0 >"$0/env.$RANK"' "$work"
for rank in 0 1 2; do
  tr '\0\n' '\n ' <"$work/env.$rank" >"$work/env"
  for expected in 'FROM_FILE=plain text' 'EXPORTED=quoted text ' BOTH=option 'NEW=a=b c' 'HERE=from here' EMPTY= KEPT=3 \
    "PER_RANK=$rank of 3" "CORE=$rank%"; do
    [ "$(grep -cxF "$expected" "$work/env")" -eq 1 ] || fail "rank $rank has not '$expected'"
  done
  expect_not_in "$work/env" '^DOOMED'
  [ -z "$(cut -d= -f1 "$work/env" | sort | uniq -d)" ] || fail "a variable is there twice"
done
# Removed and set again: set.
expect_exit 0 "$COLRUN" -n 1 --env-remove '*' -x PATH="$PATH" -x ONLY=1 env
expect_in "$out" '^ONLY=1$'
expect_in "$out" '^COL_RANK=0$'
expect_not_in "$out" '^(KEPT|HOME)='
# PATH is where the ranks' PATH says.
mkdir "$work/bin"
printf '#!/bin/sh\necho found\n' >"$work/bin/only-here"
chmod +x "$work/bin/only-here"
PATH=$work/bin:$PATH expect_exit 0 "$COLRUN" -n 1 only-here

# What cannot be.
printf 'GOOD=1\nno equals sign\n' >"$work/bad"
for words in '-x NOT_SET_ANYWHERE' '-x =2' '-x COL_RANK=5' '-x WORLD_SIZE=5' "--env-file $work/missing" "--env-file $work/bad" \
  '--env-remove a*b' '--rank-env CORE' '--rank-env CORE=%q' '--rank-env RANK=%l'; do
  # shellcheck disable=SC2086
  expect_exit 2 "$COLRUN" -n 1 $words touch "$work/started"
  expect_lines "$err" 1
done
expect_exit 2 "$COLRUN" -n 1 --env-file "$work/bad" true
expect_in "$err" 'bad:2'
# What colrun says of a rank, nobody else does: refused, for all ranks and for one program's alike.
for name in COL_RANK COL_STORE COL_CONTROL COL_ERROR_FILE COL_JOB_ID WORLD_SIZE LOCAL_RANK ROLE_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID; do
  expect_exit 2 "$COLRUN" -n 1 -x "$name=mine" touch "$work/started"
  expect_exit 2 "$COLRUN" -n 1 touch "$work/started" : -n 1 -x "$name=mine" true
  expect_exit 2 "$COLRUN" -n 1 --rank-env "$name=%l" touch "$work/started"
done
[ ! -e "$work/started" ] || fail "started in spite of a bad option"
nothing_left

#!/bin/bash
# Options from variables and from a file: the command line wins over variables, these over the file.
. "$(dirname "$0")/lib.sh"

cat >"$work/config" <<'F'
# how we run here
np = 4
label = yes
max-restarts = 1
F
ranks_of() { expect_exit 0 "$COLRUN" "$@" sh -c 'echo rank $TORCHELASTIC_MAX_RESTARTS'; }
ranks_of --config "$work/config"
expect_lines "$out" 4
expect_in "$out" '^\[3\] rank 1$'
export COLRUN_CONFIG=$work/config
ranks_of
expect_lines "$out" 4
export COLRUN_NP=3 COLRUN_MAX_RESTARTS=2
ranks_of
expect_lines "$out" 3
expect_in "$out" '^\[2\] rank 2$'
ranks_of -n 2 --no-label
expect_lines "$out" 2
expect_in "$out" '^rank 2$'
COLRUN_LABEL=no ranks_of --max-restarts 5
expect_lines "$out" 3
expect_in "$out" '^rank 5$'
# Every option has a variable.
unset COLRUN_CONFIG COLRUN_NP COLRUN_MAX_RESTARTS
COLRUN_TIMEOUT=100ms expect_exit 124 "$COLRUN" -n 1 sleep 60
COLRUN_ENV=A=1$'\n'B=2 expect_exit 0 "$COLRUN" -n 1 sh -c 'echo $A$B'
expect_in "$out" '^12$'
expect_exit 0 "$COLRUN" --help-all
cd "$work" # where a file of that name may be made
options=$(sed -n '/^TIME:/q; s/^  *\(-[^ ]*\).*/\1/p' "$out" | tr ',' '\n' | sed -n 's/^--//p' | grep -vE '^(config|help|help-all|version)$')
[ "$(wc -w <<<"$options")" -gt 50 ] || fail "--help-all has few options: $options"
for option in $options; do
  variable=COLRUN_$(tr a-z- A-Z_ <<<"$option")
  # No option takes this value, and none is unknown.
  env "$variable=:no:such:value:" timeout -k 1 20 "$COLRUN" -n 1 true >"$out" 2>"$err"
  expect_not_in "$err" 'is no option of colrun'
done

# What cannot be: said with the place where it was said. Nothing unknown is passed over in silence.
COLRUN_MAX_RESTART=2 expect_exit 0 "$COLRUN" -n 1 true
expect_in "$err" '^colrun: .*COLRUN_MAX_RESTART .*no effect'
COLRUN_MAX_RESTARTS=many expect_exit 2 "$COLRUN" -n 1 true
expect_in "$err" '^colrun: COLRUN_MAX_RESTARTS takes '
COLRUN_LABEL=maybe expect_exit 2 "$COLRUN" -n 1 true
expect_in "$err" '^colrun: COLRUN_LABEL '
for line in 'max-restart = 2' 'label' 'np = x' 'np =' 'help = yes' 'timeout = 1d'; do
  printf '\n%s\n' "$line" >"$work/bad"
  expect_exit 2 "$COLRUN" --config "$work/bad" touch "$work/started"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: $work/bad:2"
done
expect_exit 2 "$COLRUN" --config "$work/missing" touch "$work/started"
expect_in "$err" "^colrun: .*$work/missing"
[ ! -e "$work/started" ] || fail "started in spite of a bad option"
nothing_left

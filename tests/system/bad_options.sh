#!/bin/bash
# A bad command line, variable or file: exit 2, one line that says what to do, nothing started.
. "$(dirname "$0")/lib.sh"

touch_file=$work/started
try() { # EXPECTED OPTIONS…
  local expected=$1
  shift
  expect_exit 2 "$COLRUN" "$@" touch "$touch_file"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: .*$expected.* see colrun --help\$"
  [ ! -s "$out" ] || fail "something on stdout"
  [ ! -e "$touch_file" ] || fail "a rank was started"
}
for value in 0 x -1 4097 99999999999999999999 1.5 4x; do
  try "from 1 to 4096, auto, cpu or gpu, not '$value'" -n "$value"
  try "from 1 to 4096, auto, cpu or gpu, not '$value'" -np "$value"
done
try "unknown option '--bogus'" --bogus
try "unknown option '-z'" -z -n 2
try "unknown option '--timeuot'; did you mean '--timeout'\\?" --timeuot 3
expect_in "$err" "did you mean '--timeout'[?] see"
try "--bind-to socket: colrun's words are numa" --bind-to socket
try '--standalone takes no value' --standalone=no
try '--label takes no value' --label=3
try '-l takes no value' -l=3
try '--help takes no value' --help=3
try '--np needs a value' --np=
try '-n needs a value' -n ''
try '-n was given twice; give it once' -n 2 -n 3
try '--np was given twice \(first by -n\); give it once' -n2 --np 3
try '--timeout takes a time such as' --timeout soon
try '--host takes hosts such as' --host -oProxyCommand=x
try '--inject takes kill:RANK@TIME' --inject burn:1
try '--nnodes 2 needs a place where the nodes meet' --nnodes 2
try '--tee needs --output' --tee
try '--ranks names rank 4, but the job has 4 ranks' -n 4 --ranks 4
try '--timeout is for the whole job' true : --timeout 3
try '--agent takes nothing else' --agent
for words in '-n 2' '--label' '--' ''; do
  # shellcheck disable=SC2086
  expect_exit 2 "$COLRUN" $words
  expect_in "$err" '^colrun: no program to run'
done
expect_exit 2 "$COLRUN" touch "$touch_file" :
expect_in "$err" "^colrun: no program after ':'"
expect_exit 2 "$COLRUN" -n
expect_in "$err" '^colrun: -n needs a value'

export COLRUN_GRACE=soon
try 'COLRUN_GRACE takes a time such as' -n 2
unset COLRUN_GRACE
printf '# for all jobs\nmax-restart = 2\n' >"$work/colrun.conf"
try "colrun.conf:2: unknown option 'max-restart'; did you mean 'max-restarts'\\?" --config "$work/colrun.conf"
COLRUN_CONFIG=$work/none try "cannot read '.*/none': No such file or directory" -n 2
printf 'a\nb slots=x\n' >"$work/hosts"
try 'hosts:2: slots= takes a whole number' --hostfile "$work/hosts"
try "cannot read '.*/missing': No such file or directory; check the path" --hostfile "$work/missing"
try "cannot read '$work': Is a directory; name a file in it" --hostfile "$work"
try "cannot read '.*': it is no text: there is a NUL byte in it; is it the right file\\?" --hostfile /bin/true
: >"$work/empty"
try 'empty names no host; write one a line' --hostfile "$work/empty"
try "cannot read '.*/none': No such file or directory" --env-file "$work/none"
# A variable that nobody knows is no reason not to run.
COLRUN_BOGUS=1 expect_exit 0 "$COLRUN" -n 1 true
expect_in "$err" '^colrun: the variable COLRUN_BOGUS is no option of colrun and has no effect'
expect_lines "$err" 1
nothing_left

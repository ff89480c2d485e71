#!/bin/bash
# Too few open files allowed: 125, and one line that names a number. With that number the job runs, with one less it
# does not.
. "$(dirname "$0")/lib.sh"

limited='ulimit -n "$1"; shift; exec "$@"'
# named_number SUBJECT RANKS OPTIONS…: the number that colrun names where hardly any file may be open.
named_number() {
  local subject=$1
  shift
  expect_exit 125 bash -c "$limited" - 12 "$COLRUN" -n "$@" touch "$work/started"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: $subject [0-9]+ open files, but the hard limit is 12; raise it \\(ulimit -Hn\\) or use fewer ranks\$"
  [ ! -e "$work/started" ] || fail "a rank was started"
  number=$(sed -E 's/.* needs? ([0-9]+) open files.*/\1/' "$err")
}
suffices() { # RANKS OPTIONS…
  local subject="$1 ranks need" once
  [ "$1" -ne 1 ] || subject="1 rank needs"
  named_number "$subject" "$@"
  expect_exit 125 bash -c "$limited" - $((number - 1)) "$COLRUN" -n "$@" touch "$work/started" </dev/null
  expect_in "$err" " $number open files"
  once=$number
  # All ranks are there at a time, each with what it needs, before the first of them ends.
  gather "$work/here" "$1"
  expect_exit 0 bash -c "$limited" - "$number" "$COLRUN" -n "$@" bash -c '
    echo "out $RANK"; echo "error $RANK" >&2; meet "$0"' "$work/here" <"$work/input"
  [ "$number" -eq "$once" ] || fail "two numbers"
  expect_not_in "$err" 'open files|use fewer ranks'
}
seq 1000 >"$work/input"
for ranks in 1 2 16 100; do suffices $ranks; done
suffices 16 --label --timestamp
suffices 16 --merge
suffices 16 --pty
suffices 16 --pty --stdin all
suffices 16 --stdin all
suffices 16 --output "file=$work/direct/%r.%s"
suffices 16 --output "file=$work/both/%r.%s" --tee
suffices 16 --output "file=$work/pty/%r" --tee --pty
suffices 16 --report --json "$work/report.json" --trace "$work/trace.json" --metrics :0 --max-restarts 2
# What the shell has opened for the ranks counts, too.
exec {one}<"$work/input" {two}<"$work/input" {three}<"$work/input"
before=$number
suffices 16 --report --json "$work/report.json" --trace "$work/trace.json" --metrics :0 --max-restarts 2
[ "$number" -eq $((before + 3)) ] || fail "$number with three more files open, $before before"
exec {one}<&- {two}<&- {three}<&-

# Other hosts: their ssh, and where all of them meet.
cat >"$work/there" <<'SCRIPT'
#!/bin/bash
export TMPDIR=$(dirname "$0")/hosts/$1  # of that host
mkdir -p "$TMPDIR"
exec sh -c "$2"
SCRIPT
chmod +x "$work/there"
# expect_on_hosts RANKS HOST:RANKS…
expect_on_hosts() {
  local ranks=$1 hosts
  shift
  hosts=$(IFS=,; echo "$*")
  on_hosts=("$COLRUN" --ssh "$work/there" --host "$hosts" --stdin all)
  expect_exit 125 bash -c "$limited" - 12 "${on_hosts[@]}" true
  expect_in "$err" '^colrun: ([0-9]+ ranks? and )?[0-9]+ other hosts? needs? [0-9]+ open files, but the hard limit is 12; raise it'
  number=$(sed -E 's/.* needs? ([0-9]+) open files.*/\1/' "$err")
  expect_exit 0 bash -c "$limited" - "$number" "${on_hosts[@]}" sh -c 'cat >/dev/null; echo "$RANK"' <"$work/input"
  sort -n "$out" | cmp - <(seq 0 $((ranks - 1))) || fail "not each rank once"
  nothing_left_soon
}
expect_on_hosts 14 localhost:2 h{1..12}.example:1
expect_on_hosts 17 localhost:1 far.example:16
expect_on_hosts 16 far.example:16

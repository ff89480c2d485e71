#!/bin/bash
# --debugger: the ranks that are asked for run under it, with the keyboard; the others as always.
. "$(dirname "$0")/lib.sh"

cat >"$work/debugger" <<'D'
#!/bin/sh
read -r line
echo "debugging rank $RANK: $* ($line)"
D
chmod +x "$work/debugger"
program=$(type -P echo)
expect_exit 0 "$COLRUN" -n 3 --debugger "'$work/debugger' --args" --debug-ranks 1 echo 'a b' < <(echo typed)
sort "$out" | cmp - <(printf '%s\n' 'a b' 'a b' "debugging rank 1: --args $program a b (typed)") || fail "not rank 1 alone under the debugger"
expect_exit 0 "$COLRUN" -n 2 --debugger "$work/debugger" echo x < <(echo typed)
expect_in "$out" "^debugging rank 0: $program x \(typed\)\$"
expect_exit 127 "$COLRUN" -n 2 --debugger no-such-debugger touch "$work/started"
expect_exit 2 "$COLRUN" -n 2 --debug-ranks 1 touch "$work/started"
expect_exit 2 "$COLRUN" -n 2 --debugger gdb --debug-ranks 2 touch "$work/started"
[ ! -e "$work/started" ] || fail "started in spite of a bad option"
nothing_left

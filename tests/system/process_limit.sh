#!/bin/bash
# Too few processes allowed: 125, one line that says what to do, and the ranks that were started are gone.
. "$(dirname "$0")/lib.sh"

# The limit does not bind root, so another user is needed, who has few processes of his own.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
  user=64123
  setpriv --reuid=$user --regid=$user --clear-groups true 2>/dev/null || { echo "setpriv cannot take another user's id"; exit 77; }
  as_user=(setpriv --reuid=$user --regid=$user --clear-groups)
  chmod 755 "$work"
  chmod 777 "$TMPDIR"
  "${as_user[@]}" test -x "$COLRUN" || { echo "another user cannot run $COLRUN"; exit 77; }
  mkdir -m 777 "$work/ranks"
  processes=0
else
  mkdir "$work/ranks"
  processes=$(ps -L -u "$(id -u)" --no-headers | wc -l)
fi
limited='ulimit -u "$1"; shift; exec "$@"'
expect_faster 15000 expect_exit 125 "${as_user[@]}" bash -c "$limited" - $((processes + 12)) "$COLRUN" -n 40 sh -c 'echo $$ >"$0/$RANK"; exec sleep 60' "$work/ranks"
expect_in "$err" '^colrun: .*(processes|ulimit -u)'
expect_lines "$err" 1
for file in "$work"/ranks/*; do
  [ -s "$file" ] && ! gone "$(cat "$file")" && fail "rank $(basename "$file") was left running"
done
nothing_left
# Where there is no room for even one.
expect_exit 125 "${as_user[@]}" bash -c "$limited" - 1 "$COLRUN" -n 2 true
expect_in "$err" '^colrun: '
nothing_left

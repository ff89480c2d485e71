#!/bin/bash
# Ranks that colrun did not signal are not said to have been ended.
. "$(dirname "$0")/lib.sh"

# Rank 0 uses col, so colrun gives all a moment to see that rank 1 is lost. In it, each of the others ends by itself.
once() {
  rm -f "$work"/joined "$work"/pipe.*
  mkfifo "$work/pipe.2" "$work/pipe.3"
  expect_exit 7 "$COLRUN" -n 4 bash -c '
    case $RANK in
      0) exec "$0" cause "$1/joined" ;;
      1) await test -s "$1/joined"
         exec {held}>"$1/pipe.2" {held}>"$1/pipe.3"  # they end when this rank does
         exit 7 ;;
      2) read -r _ <"$1/pipe.2"; exit 0 ;;
      3) read -r _ <"$1/pipe.3"; echo "{\"code\":\"peer_lost\"}" >"$COL_ERROR_FILE"; exit 1 ;;
    esac' "$CONTROL_PAGE" "$work"
  expect_in "$err" '^colrun: rank 1 .* exited with code 7'
  expect_in "$err" '^colrun: 1 other rank failed, too \(rank 0: exit code 1\); 1 other rank failed because of it \(rank 3\)$'
  expect_lines "$err" 2
}
again once
nothing_left

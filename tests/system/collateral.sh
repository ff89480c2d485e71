#!/bin/bash
# A rank whose error file says that it lost a peer is never the cause, also when it ends first.
. "$(dirname "$0")/lib.sh"

pipe=$work/pipe; mkfifo "$pipe"
ends_first() {
  expect_exit 9 "$COLRUN" -n 3 bash -c '
    if [ $RANK = 0 ]; then
      echo "{\"code\":\"peer_lost\",\"rank\":2,\"group\":\"default\",\"message\":\"rank 2 is gone\"}" >"$COL_ERROR_FILE"
      exec {left}>"$0"  # the pipe ends when this rank does
      exit 1
    fi
    [ $RANK = 1 ] && exec sleep 60
    read -r _ <"$0"
    echo "{\"code\":\"mismatch\",\"message\":\"counts differ\"}" >"$COL_ERROR_FILE"
    exit 9' "$pipe"
  expect_in "$err" 'rank 2 .* exited with code 9'
  expect_in "$err" '^colrun: rank 2 said mismatch: counts differ$'
}
again ends_first

# When nothing else failed, the first of them decides.
expect_exit 3 "$COLRUN" -n 2 sh -c 'if [ $RANK = 1 ]; then echo "{\"code\":\"aborted\"}" >"$COL_ERROR_FILE"; exit 3; fi; exec sleep 60'
nothing_left

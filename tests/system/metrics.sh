#!/bin/bash
# colrun --metrics: a page for Prometheus, on this host only unless an address is given.
. "$(dirname "$0")/lib.sh"
get() { python3 - "$@" <<'PY'
import sys, urllib.error, urllib.request
try:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy of the user's
    answer = direct.open(sys.argv[1], timeout=10)
    print(answer.status, answer.headers["Content-Type"])
    print(answer.read().decode(), end="")
except urllib.error.HTTPError as error:
    print(error.code)
PY
}
mkfifo "$work/go"
"$COLRUN" -n 3 --metrics :0 bash -c 'read -r _ <"$0" || exit 0' "$work/go" >"$out" 2>"$work/job" &
job=$!
said() { url=$(sed -nE 's|^colrun: figures of this job: (http://127\.0\.0\.1:[0-9]+/metrics)$|\1|p' "$work/job"); [ -n "$url" ]; }
wait_until 20 "colrun to say where the page is" said
three() { get "$url" >"$out"; grep -q '^col_ranks{state="not in col"} 3$' "$out"; }
wait_until 20 "all ranks are there" three
expect_in "$out" '^200 text/plain; version=0.0.4; charset=utf-8$'
expect_in "$out" '^# TYPE col_job_restarts_total counter$'
expect_in "$out" '^col_job_info\{job="[0-9a-f-]+",command=".*--metrics :0 bash -c .*"\} 1$'
expect_in "$out" '^col_ranks_failed 0$'
get "${url%/metrics}/other" >"$out"
expect_in "$out" '^404$'
# Callers that say nothing hold up nobody; one more than it serves at a time.
port=${url##*:}
port=${port%/metrics}
for _ in 1 2 3 4 5 6 7; do exec {held}<>"/dev/tcp/127.0.0.1/$port"; done
wait_until 20 "an answer beside silent callers" three
# The port is taken.
expect_exit 2 "$COLRUN" -n 1 --metrics ":$port" true
expect_in "$err" '^colrun: --metrics: cannot listen at 127\.0\.0\.1:[0-9]+: Address already in use; name an address'
exec 5<>"$work/go"  # stays open: a rank may come to it late
printf '\n\n\n' >&5
expect_status 0 "$job"
[ -z "$(ls -A "$TMPDIR")" ] || fail "something is left in TMPDIR"

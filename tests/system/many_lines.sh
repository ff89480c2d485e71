#!/bin/bash
# Eight ranks print 100,000 lines of 200 bytes each: every line whole, in order, none lost, with labels and without.
. "$(dirname "$0")/lib.sh"

padding=$(printf 'x%.0s' {1..185})
print='BEGIN { for (i = 0; i < 100000; i++) printf "r%s %06d %s end\n", ENVIRON["RANK"], i, padding }'
check='
  length($0) != 199 + length(label) || (label && $1 != "[" substr($(NF - 3), 2) "]") || $(NF - 3) !~ /^r[0-7]$/ ||
  $(NF - 1) != padding || $NF != "end" || next_line[$(NF - 3)]++ != $(NF - 2) + 0 { if (!bad++) print "bad:", NR, $0 }
  END { if (NR != 800000) print "lines:", NR; exit bad > 0 || NR != 800000 }'
try() { # LABEL OPTIONS…
  local label=$1
  shift
  timeout -k 1 60 "$COLRUN" -n 8 "$@" awk -v padding="$padding" "$print" 2>"$err" |
    awk -v padding="$padding" -v label="$label" "$check" >"$out"
  [ "${PIPESTATUS[*]}" = '0 0' ] || fail "a line is lost, torn or out of order with options '$*'"
  [ ! -s "$err" ] || fail "something on stderr"
}
try ''
try '[0] ' --label
nothing_left

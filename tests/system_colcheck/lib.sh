# shellcheck shell=bash
# $COLCHECK and $COLRUN are the programs under test.
: "${COLCHECK:?set COLCHECK to the colcheck program}" "${COLRUN:?set COLRUN to the colrun program}"
. "$(dirname "${BASH_SOURCE[0]}")/../support/tool.sh"

# shellcheck shell=bash
# $COLBENCH and $COLRUN are the programs under test.
: "${COLBENCH:?set COLBENCH to the colbench program}" "${COLRUN:?set COLRUN to the colrun program}"
. "$(dirname "${BASH_SOURCE[0]}")/../support/tool.sh"

# shellcheck shell=bash
# again COMMAND…: a part of a test that asks what the others did after a rank had failed. colrun gives them 250 ms, and then ends
# them; a machine under load may let one miss that, and it is rightly ended. So there are ten tries within a minute, and the last
# one counts.
again() {
  local end=$((SECONDS + 60)) attempt
  for ((attempt = 1; attempt < 10 && SECONDS < end; ++attempt)); do
    ("$@") 2>"$work/missed" && return
  done
  "$@"
}

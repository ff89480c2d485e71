#!/usr/bin/env bash
# JUnit reports of two runs with different seeds have the same tests, which have times, and the command as it was typed.
. "$(dirname "$0")/lib.sh"

options=(--backend shm --device cpu --np 1,2 --only "exact,untouched,wrong_arguments,unaligned,refill,plans")
for seed in 1 2; do
  expect 0 "$COLCHECK" "${options[@]}" --seed $seed --junit "$work/$seed.xml"
done
python3 - "$work" "${options[*]}" <<'P' || fail "the reports (above)"
import sys, xml.etree.ElementTree as xml

work, options = sys.argv[1:]
names, draws = [], []
for seed in "12":
    root = xml.parse(f"{work}/{seed}.xml").getroot()
    tests = root.findall(".//testcase")
    names.append([(test.get("classname"), test.get("name")) for test in tests])
    draws.append({p.get("value") for p in root.findall(".//testcase/properties/property[@name='draw']")})
    assert len(set(names[-1])) == len(tests) == int(root.get("tests")), "a name occurs twice"
    assert all("0x" not in name and "," not in name for _, name in names[-1]), names[-1]
    times = [float(test.get("time")) for test in tests]
    assert all(time > 0 for time in times) and sum(times) < float(root.get("time")) * 2, times
    commands = {p.get("value") for p in root.findall(".//testsuite/properties/property[@name='command']")}
    assert commands == {f"colcheck {options} --seed {seed} --junit {work}/{seed}.xml"}, commands
differing = sorted(set(names[0]) ^ set(names[1]))
assert not differing, differing
assert draws[0] != draws[1] and len(draws[0]) > len(names[0])
print(len(names[0]), "tests of", len(draws[0]), "cases")
P

# stdout is full, or its reader is gone, for ranks of its own and for one that is there: said, and no file goes with it.
options=(--backend shm --device cpu --np 1 --only exact)
mkfifo "$work/unread"
exec 3<>"$work/unread" 4>"$work/unread" 3>&-
alone=(env RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 GROUP_RANK=0 GROUP_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1
  MASTER_PORT=1 TORCHELASTIC_RUN_ID=full)
for origin in own alone; do
  start=("$COLCHECK" "${options[@]}")
  [ $origin = own ] || start=("${alone[@]}" "${start[@]}")
  expect 2 sh -c '"$@" >/dev/full' - "${start[@]}"
  complains "stdout: No space left on device"
  [ "$(wc -l <"$err")" = 1 ] || fail "more than a line"
  timeout 300 "${start[@]}" 2>"$err" </dev/null >&4
  [ $? = 141 ] || fail "not 141 where the reader is gone"
done
expect 2 sh -c '"$0" --list >/dev/full' "$COLCHECK"
complains "cannot write to stdout: No space left on device"
nothing_left

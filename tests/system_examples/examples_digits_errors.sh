#!/usr/bin/env bash
# Whatever is wrong is said once, on one line, by one rank; the exit code is the documented one; no file is left.
. "$(dirname "$0")/lib.sh"

# expect CODE TEXT ARGUMENT…: four ranks, and one process alone.
expect() {
  local code=$1 text=$2 got ranks
  shift 2
  for ranks in 4 1; do
    got=0
    trainer $ranks "$@" >out 2>err || got=$?
    [ "$got" -eq "$code" ] || fail "$ranks ranks, '$*': exit code $got, expected $code: $(cat err)"
    [ "$(grep -c '^digits_trainer: ' err)" -eq 1 ] || fail "$ranks ranks, '$*': expected one line, got: $(cat err)"
    grep -q '^digits_trainer: .*'"$text" err || fail "$ranks ranks, '$*': expected '$text', got: $(cat err)"
    ! grep -qv -e '^digits_trainer: ' -e '^colrun: ' err || fail "$ranks ranks, '$*': other lines: $(cat err)"
  done
  printf '%-28s %s\n' "$*" "$(grep '^digits_trainer: ' err)"
}

mkdir folder
printf '1,2,3\n' >short.csv
: >empty.csv
mkfifo pipe
ln -s pipe link
sed '3s/^0,/17,/' "$SOURCE_DIR/src/examples/data/digits.csv" >pixel.csv
echo text >text.model
trainer 1 --epochs 0 --model good.model >/dev/null
head -c 1000 good.model >cut.model
touch err out # so that they count as known below
before=$(ls)

expect 2 "not expected: --bogus; digits_trainer --help" --bogus
expect 2 "not expected: extra" extra
expect 2 "--epochs: must be a whole number 0..1000000, not 'x'" --epochs x
expect 2 "--batch: must be a whole number 1..1000000, not '0'" --batch 0
expect 2 "--lr: must be a number above 0" --lr -1
expect 2 "--device: must be cpu or cuda, not 'tpu'" --device tpu
expect 2 "--strategy: this trainer is data-parallel; src/examples/python/strategies.py .*; digits_trainer --help" --strategy zero
expect 1 "--device cuda is not available: " --device cuda
expect 2 "--continue: needs the model" --continue --no-save
expect 2 "--continue: goes on from --model" --continue --resume good.model
expect 1 "'absent.csv' cannot be opened: No such file or directory" --data absent.csv
expect 1 "'folder' is a directory" --data folder
expect 1 "short.csv:1: expected 65 values .*, found 3" --data short.csv
expect 1 "empty.csv: holds no image; --data takes a CSV file" --data empty.csv
expect 1 "pixel.csv:3: value 1 is '17', expected a whole number 0..16" --data pixel.csv
expect 1 "'absent.model' cannot be opened: No such file or directory" --resume absent.model
expect 1 "'text.model' is not a checkpoint of digits_trainer; --resume takes a file" --resume text.model
expect 1 "'cut.model' is cut short: 1000 bytes" --resume cut.model
expect 1 "there is no folder 'absent'; create it" --model absent/digits.model
expect 1 "'folder' is a directory" --model folder
for name in pipe link; do
  expect 1 "'$name' exists and is not a regular file; name another with --model FILE" --model $name
  ! grep -q '^epoch' out || fail "--model $name is refused only after the training"
done
[ -p pipe ] && [ "$(readlink link)" = pipe ] || fail "the FIFO or the link to it was replaced: $(ls -l)"
expect 1 "the loss is not a number any more after epoch 1; try a smaller --lr" --lr 1e30 --epochs 5

[ "$(ls)" = "$before" ] || fail "files are left: $(ls)"

# One rank alone without the data (a node whose file system is not mounted): it says so, and nobody waits for it.
got=0
timeout --kill-after=5 60 "$COLRUN" -n 4 sh -c '[ $COL_RANK = 2 ] && set -- --data absent.csv; exec "$0" --no-save "$@"' \
  "$DIGITS_TRAINER" >out 2>err || got=$?
[ $got -eq 1 ] || fail "rank 2 without data: exit code $got, expected 1: $(cat err)"
[ "$(grep -c "^digits_trainer: data file 'absent.csv'" err)" -eq 1 ] || fail "rank 2 without data: $(cat err)"

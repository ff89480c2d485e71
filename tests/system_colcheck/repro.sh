#!/usr/bin/env bash
# A case that fails prints a token, the token runs exactly that case again, and the smallest case is smaller.
. "$(dirname "$0")/lib.sh"

token='exact,backend=planted-dropped_last_element,np=4,coll=allreduce,algo=planted,dtype=float32,op=max,count=131,seed=0x5'
expect 1 "$COLCHECK" --repro "$token"
says "$token"
says '1 failed'
expect 0 "$COLCHECK" --repro 'exact,backend=shm,np=3,coll=allreduce,dtype=float32,count=7'
says '1 case passed'
expect 2 "$COLCHECK" --repro 'exact,coll=allreduc'
complains 'token'
nothing_left

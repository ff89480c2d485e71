#!/bin/bash
# The command of configs/k8s/indexed-job.yaml, on hosts that are as its pods: on one machine, without a file they share.
. "$(dirname "$0")/nodes_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}"
job=$(cd "$(dirname "$0")/../.." && pwd)/configs/k8s/indexed-job.yaml
make_hosts 2 --one-machine

# The block of text after "args:", without its indentation.
script=$(awk '/^ *args:/ { inside = 1; getline; next }
  inside { match($0, /^ */); if (!indent) indent = RLENGTH; if (RLENGTH < indent) exit
           print substr($0, indent + 1) }' "$job")
expect_in <(echo "$script") '^exec colrun --nnodes'
# What the service does: each pod has a name there.
for host in n1 n2; do
  for index in 0 1; do echo "$(host_address n$((index + 1))) col-train-$index.col-train"; done >>"$hosts/$host/names"
done
# What the program and its arguments are is the user's matter.
ln -s "$COLRUN" "$work/bin/colrun"
printf '#!/bin/sh\nexec "$DIGITS_TRAINER" --no-save "$@"\n' >"$work/bin/my_trainer"
chmod +x "$work/bin/my_trainer"

# pod INDEX: as kubelet starts it. Variables of the cluster's own are there as well.
pod() {
  local host=n$(($1 + 1))
  start_on $host env JOB_COMPLETION_INDEX="$1" NODES=2 RANKS_PER_NODE=2 COL_RDZV_TOKEN=from-the-secret \
    KUBERNETES_SERVICE_HOST=10.96.0.1 KUBERNETES_SERVICE_PORT=443 HOSTNAME="col-train-$1" \
    /bin/sh -c "$script" >"$work/$host.out" 2>"$work/$host.err"
  node_started[$host]=$started
}
pod 1
pod 0
expect_node 0 n1 40
expect_node 0 n2
expect_in "$work/n1.out" 'digits_trainer: 4 ranks over'
expect_in "$work/n1.out" '^test accuracy 0\.9[0-9]+ after 3 epochs on 4 ranks'
nothing_left

#!/bin/bash
# Hosts for nodes.py, made as the tests of several nodes make theirs:  nodes_hosts.sh NUMBER PROCESSORS
#
# Deals the processors (as taskset lists them, one after the other: 0 1 2) to the hosts in turn, so that hosts share none as long as there
# are enough. Then prints `ready FOLDER`, where bin/on runs a program on a host and bin/host_ssh is ssh from one to another, and
# obeys lines of its input: `shape RATE` holds every link to it, `free` undoes that; each is answered by `done`. The hosts end with
# the input.
. "$(dirname "$0")/../system/ssh_lib.sh"
number=$1
read -ra processors <<<"$2"

make_hosts "$number"
if [ "$number" -le "${#processors[@]}" ]; then
  for ((i = 0; i < ${#processors[@]}; ++i)); do echo "${processors[i]}" >>"$work/share.$((i % number + 1))"; done
else
  for ((i = 0; i < number; ++i)); do echo "${processors[i % ${#processors[@]}]}" >"$work/share.$((i + 1))"; done
fi
for ((i = 1; i <= number; ++i)); do give_processors "n$i" "$(paste -sd, "$work/share.$i")"; done
serve_ssh >&2
printf '#!/bin/sh\nexec %s "$@"\n' "$ssh_command" >"$work/bin/host_ssh"
chmod +x "$work/bin/host_ssh"
echo "ready $work"

while read -r word rate; do
  for host in "${host_names[@]}"; do
    case $word in
      shape) shape_link "$host" "$rate" ;;
      free) free_link "$host" ;;
    esac
  done
  echo "done"
done

# What zsh offers for each line that is given, a line each:  zsh -f offered.zsh FOLDER LINE…; FOLDER has _col.
# A second zsh, at a terminal of its own, completes as a user's does: with compinit, and a tab behind the line.
if [[ $1 == --inside ]]; then
  fpath=($2 $fpath)
  autoload -Uz compinit
  compinit -u -D
  LISTMAX=10000  # it would ask before it lists more
  typeset -ga offered
  compadd() {
    local -a found
    # Asked for an array, it offers nothing.
    [[ ${@[1,(i)(-|--)]} == *-[OAD]\ * ]] || { builtin compadd -A found "$@"; offered+=($found) }
    builtin compadd "$@"
  }
  offer() {
    offered=()
    zle complete-word
    zle kill-whole-line
    print -r -- "<<$offered>>"
  }
  zle -N offer
  bindkey '^I' offer
  print -r -- '<<>>'
  return
fi
zmodload zsh/zpty
zpty shell "zsh -f -i"
zpty -w shell "PROMPT= RPROMPT=; source ${(q)0} --inside ${(q)1}"
zpty -r shell said '*<<*>>*'
for line in "${@[2,-1]}"; do
  zpty -n -w shell $line$'\t'
  zpty -r shell said '*<<*>>*'
  said=${said##*<<}
  print -r -- ${said%%>>*}
done
zpty -d shell

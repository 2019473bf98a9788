# SPDX-License-Identifier: MIT
# bash completion for sb: verbs as sb help has them, ids as the gateway says.
_sb() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb='' offer='' i
	local -a of=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-b) ((++i < COMP_CWORD)) && of=(-b "${COMP_WORDS[i]}") ;;
		-j) ;;
		*) verb=${COMP_WORDS[i]} && break ;;
		esac
	done
	case $verb/${COMP_WORDS[COMP_CWORD-1]} in
	*/-b) offer='ls -a' ;;
	exec/-s | run/-s | cat/-s | diff/* | publish/* | rm/*) offer='ls' ;;
	kill/*) offer='ps' ;;
	/* | help/*) offer=help ;;
	esac
	COMPREPLY=()
	[[ $offer && $cur != -* ]] || return 0
	# A verb, or the field of an id.
	# shellcheck disable=SC2086 # words
	mapfile -t COMPREPLY < <(compgen -W "$("$1" "${of[@]}" $offer 2>/dev/null |
	    if [[ $offer = help ]]; then sed -n 's/^  \([a-z]*\) .*/\1/p'; else cut -f 1; fi)" -- "$cur")
}
complete -o default -F _sb sb

# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# shellcheck disable=SC2154 # set by the script
# Parts of scripts that start services. The script has set prog, its name, and
# share, the directory of this file.

die() {
	code=$1
	shift
	printf '%s: fatal: %s\n' "$prog" "$*" >&2
	exit "$code"
}
warn() { printf '%s: warning: %s\n' "$prog" "$*" >&2; }

absolute() {
	case $2 in /*) ;; *) die 100 "$1 is not an absolute path: $2" ;; esac
}

# Milliseconds of a clock that nobody sets.
now() { read -r t _ </proc/uptime && echo "${t%.*}${t#*.}0"; }

# places: sets SB_STATE and SB_RUN, as lib/place.h.
places() {
	SB_STATE=${SB_STATE:-${XDG_STATE_HOME:+$XDG_STATE_HOME/sb}}
	[ -n "$SB_STATE" ] || if [ "$(id -u)" = 0 ]; then
		SB_STATE=/var/lib/sb
	else
		SB_STATE=${HOME:+$HOME/.local/state/sb}
		[ -n "$SB_STATE" ] || die 100 "neither SB_STATE nor HOME is set"
	fi
	SB_RUN=${SB_RUN:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/sb}}
	[ -n "$SB_RUN" ] || if [ "$(id -u)" = 0 ]; then
		SB_RUN=/run/sb
	else
		SB_RUN=$SB_STATE/run
	fi
	absolute SB_STATE "$SB_STATE"
	absolute SB_RUN "$SB_RUN"
}

# service TO NAME TEMPLATE VARIABLE=VALUE…: makes the service directory TO/NAME,
# whole at once: s6-svscan does not look at names with a dot.
service() {
	to=$1 name=$2 new=$1/.new.$2 template=$3
	shift 3
	log=$share/log
	[ "$template" != logger ] || log=
	[ ! -e "$new" ] || rm -rf "$new"
	mkdir -p "$new/env" && cp -R "$share/$template/." ${log:+"$log"} "$new" || exit 111
	for v in "PATH=$PATH" "HOME=${HOME:-}" "XDG_CACHE_HOME=${XDG_CACHE_HOME:-}" \
	    "SB_STATE=$SB_STATE" "SB_RUN=$SB_RUN" "SB_OPS=$share/ops" \
	    "SB_LOG=$SB_STATE/log/$name" "SB_LOG_SIZE=${SB_LOG_SIZE:-1000000}" \
	    "SB_LOG_FILES=${SB_LOG_FILES:-10}" "$@"; do
		# An empty file is a variable that is unset.
		printf %s "${v#*=}" >"$new/env/${v%%=*}" || exit 111
	done
	mv "$new" "$to/$name" || exit 111
}

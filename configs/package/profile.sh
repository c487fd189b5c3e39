# Completes carma in bash where the package bash-completion is not installed; where it
# is, that loads the same file. The file is read at the first TAB.
if [ -n "${BASH_VERSION-}" ] && [ -n "${PS1-}" ] && [ -z "${BASH_COMPLETION_VERSINFO-}" ]; then
	_carma_load() {
		. /usr/share/bash-completion/completions/carma && return 124
	}
	complete -F _carma_load carma
fi

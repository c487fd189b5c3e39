package root

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
)

func completionCommand(a *cli.App) *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash": func(c *cobra.Command, w io.Writer) error { return bashCompletion(c, w) },
		"zsh":  func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
		"fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
	}
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:     "completion bash|zsh|fish",
		GroupID: cli.GroupOther,
		Short:   "Print the completion script for a shell",
		Long: `Print a script that makes the shell complete commands, flags, tasks, models and
policies.

  bash   source <(carma completion bash)                          in ~/.bashrc
  zsh    carma completion zsh > "${fpath[1]}/_carma"
  fish   carma completion fish > ~/.config/fish/completions/carma.fish`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("write for example: carma completion bash", "it takes one shell: %s", strings.Join(names, ", "))
			}
			if err := suggest.OneOf(args[0], names); err != nil {
				return cli.Usagef("", "%v", err)
			}
			return nil
		},
		ValidArgsFunction: cli.Words(names),
		RunE:              func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.Out) },
	}
}

// bashCompletion writes cobra's script. The script needs the package bash-completion,
// which many servers lack; without it, it would print an error at each TAB.
func bashCompletion(c *cobra.Command, w io.Writer) error {
	if err := c.GenBashCompletionV2(w, true); err != nil {
		return err
	}
	_, err := io.WriteString(w, withoutPackage)
	return err
}

// withoutPackage replaces the functions of the package that the script uses. It splits
// words only at spaces, as the script expects.
const withoutPackage = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
__carma_init_completion()
{
    COMPREPLY=()
    local line="${COMP_LINE:0:COMP_POINT}"
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
}
fi
if ! declare -F __ltrimcolon_completions >/dev/null 2>&1; then
__ltrimcolon_completions()
{
    [[ $1 == *:* && $COMP_WORDBREAKS == *:* ]] || return 0
    local i before="${1%"${1##*:}"}"
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$before"}
    done
}
fi
if ! declare -F _filedir >/dev/null 2>&1; then
_filedir()
{
    local kind=-f
    [[ $1 == -d ]] && kind=-d
    mapfile -t COMPREPLY < <(compgen "$kind" -- "$cur")
    compopt -o filenames 2>/dev/null
}
fi
`

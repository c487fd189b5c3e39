package pick

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/runner/api"
)

// Complete completes the names and numbers of tasks. With all, finished tasks are
// included.
func Complete(all bool) cli.Completion {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		config, from, err := settings.Load(cmd.Flags())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// The user waits for the shell: no answer is better than a late one.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		client, err := cli.Connect(cmd, config, from)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := client.Tasks(ctx, api.ListOptions{All: all, Limit: 200})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, t := range list {
			for _, name := range []string{strconv.FormatInt(t.ID, 10), t.Name} {
				if name != "" && strings.HasPrefix(name, start) {
					fit = append(fit, fmt.Sprintf("%s\t%s %s", name, t.Phase, t.Image))
				}
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

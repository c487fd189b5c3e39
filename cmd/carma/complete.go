package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/configs/nearest"
	"carma/configs/servers"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/runner/api"
)

func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash": func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"zsh":  func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
		"fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
	}
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script for a shell",
		Long: `Print a script that makes the shell complete commands, flags, tasks, models and
policies.

  bash   source <(carma completion bash)                          in ~/.bashrc
  zsh    carma completion zsh > "${fpath[1]}/_carma"
  fish   carma completion fish > ~/.config/fish/completions/carma.fish`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("write for example: carma completion bash", "it takes one shell: %s", strings.Join(names, ", "))
			}
			if err := nearest.OneOf(args[0], names); err != nil {
				return usagef("", "%v", err)
			}
			return nil
		},
		ValidArgsFunction: words(names),
		RunE:              func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.out) },
	}
}

type completion = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective)

func noCompletion(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// words completes from a fixed list.
func words(list []string) completion {
	return func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, w := range list {
			if strings.HasPrefix(w, start) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// complete gives a flag its completion.
func complete(cmd *cobra.Command, flag string, fn completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // no such flag: our own bug
	}
}

func estModels(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return words(booking.NewCatalogue().Names())(cmd, args, start)
}

func policies(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	var fit []string
	for _, p := range mapper.PolicyNames() {
		if strings.HasPrefix(p, start) {
			fit = append(fit, p+"\t"+mapper.PolicyDoc(p))
		}
	}
	return fit, cobra.ShellCompDirectiveNoFileComp
}

// completeTasks completes the names and numbers of tasks; all: the finished
// ones too.
func (a *app) completeTasks(all bool) completion {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		config, from, err := configs.Load(cmd.Flags())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// Somebody waits for the shell: no answer is better than a late one.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		list, err := api.NewClient(configs.ClientSocket(config, from)).Tasks(ctx, api.ListOptions{All: all, Limit: 200})
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

// sources completes --gpus of the daemon.
func sources(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	list := []string{"auto", "nvml"}
	for _, name := range servers.Names() {
		list = append(list, "sim:"+name)
	}
	return words(list)(cmd, args, start)
}

package change

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/envs"
	"carma/cmd/carma/pick"
	"carma/cmd/carma/submit"
	"carma/runner/api"
)

// Rerun returns the command carma rerun.
func Rerun(a *cli.App) *cobra.Command {
	var changed api.Submit
	cmd := &cobra.Command{
		Use:     "rerun [flags] TASK [ARG...]",
		GroupID: cli.GroupTasks,
		Short:   "Submit a task again, as it was or with changes",
		Long: `Submit a task again as a new one: the same image, arguments, environment, mounts
and limits. Flags before the task change what they name; arguments behind it
replace its own; --edit opens all of it in your editor (VISUAL, EDITOR, else vi).
The new task waits for no other task, and is in no group. Prints its id.`,
		Example: `  carma rerun 17
  carma rerun --mem 20G 17
  carma rerun 17 train.py --lr 0.01
  carma rerun --edit 17`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("write for example: carma rerun 17", "no task named")
			}
			return cli.NoEmpty(args[:1])
		},
		ValidArgsFunction: pick.Complete(true),
	}
	for _, f := range api.Fields() {
		if f.Name != "parallel" {
			cli.FieldFlag(cmd, f, &changed)
		}
	}
	env := cmd.Flags().StringArrayP("env", "e", nil, "environment `KEY=value` to add or change; KEY alone takes yours")
	inEditor := cmd.Flags().Bool("edit", false, "change it in your editor before it is submitted")
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().SetNormalizeFunc(asDocker)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		vars, err := cli.Environment(nil, *env)
		if err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		old, err := client.Task(cmd.Context(), ref)
		if err != nil {
			return err
		}
		if old.EnvHidden {
			return cli.Usagef("its owner can, or submits it with --visibility open", "the environment of task %s is %s's and private, so it cannot be run again as it was", args[0], old.User)
		}
		again := fresh(old.Submit)
		uid, err := client.UID(cmd.Context())
		if err != nil {
			return err
		}
		if client.Remote() {
			again.Account = "" // the daemon sets the namespace's account
		}
		if old.UID != uid {
			again.Account = "" // a group of its submitter
			again.Notify = nil // channels of its submitter
		}
		for _, f := range api.Fields() {
			if flag := cmd.Flags().Lookup(f.Name); flag != nil && flag.Changed {
				if slices.Contains([]string{"conda", "venv", "host"}, f.Name) { // it replaces the earlier environment or image
					again.Image, again.Conda, again.Venv, again.Host = "", "", "", false
				}
				f.Take(&again, &changed)
			}
		}
		if err := envs.Settle(&again, "."); err != nil {
			return err
		}
		if cmd.Flags().Changed("est-model") {
			notes, err := submit.Model(&again, ".")
			if err != nil {
				return err
			}
			a.Warn(notes)
		}
		again.Env = append(again.Env, vars...)
		if words := args[1:]; len(words) > 0 {
			if words[0] == "--" {
				words = words[1:]
			} else if err := meant(cmd, words, old.Submit.Command, args[0]); err != nil {
				return err
			}
			again.Command, again.Read = words, nil
			if again.EstModel == "" {
				again.Network = nil
			}
		}
		if *inEditor {
			if err := edit(a, &again, args[0]); err != nil {
				return err
			}
			if again.EstModel != old.Submit.EstModel {
				notes, err := submit.Model(&again, ".")
				if err != nil {
					return err
				}
				a.Warn(notes)
			}
		}
		all := []api.Submit{again}
		a.Warn(submit.Commands(all, "."))
		again = all[0]
		if err := submit.Channels(cmd.Context(), a, client); err != nil {
			return err
		}
		task, err := client.Submit(cmd.Context(), again)
		if err != nil {
			return err
		}
		a.Warn(task.Warnings)
		a.Println(strconv.FormatInt(task.ID, 10))
		return nil
	}
	return cmd
}

// meant refuses words after the task that begin with a flag that carma has but the task's
// program does not: the words would replace all of its arguments.
func meant(cmd *cobra.Command, words, before []string, task string) error {
	name, _, _ := strings.Cut(words[0], "=")
	flag, is := strings.CutPrefix(name, "--")
	is = is && flag != "" && cmd.Flags().Lookup(flag) != nil || len(name) == 2 && name[0] == '-' && cmd.Flags().ShorthandLookup(name[1:]) != nil
	if !is || slices.ContainsFunc(before, func(w string) bool { return w == name || strings.HasPrefix(w, name+"=") }) {
		return nil
	}
	line := strings.Join(words, " ")
	return cli.Usagef("write carma rerun "+line+" "+task+", or carma rerun "+task+" -- "+line+" if it is the program's", "%s stands behind the task, where words replace the program's arguments", name)
}

// fresh returns a submission without its ties to other tasks: its name, its group, its
// dependencies.
func fresh(s api.Submit) api.Submit {
	s.Name, s.Part, s.Array, s.After, s.Delay, s.Parallel = "", "", nil, nil, 0, 0
	s.Env = slices.Clone(s.Env)
	return s
}

package run

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/elsewhere"
	"carma/cmd/carma/envs"
)

// words returns the values of -e that are not KEY=value.
func (o *options) words() (list []string) {
	for _, v := range o.env {
		if v != "" && !strings.Contains(v, "=") {
			list = append(list, v)
		}
	}
	return list
}

// chosen reports whether a flag selects an environment without an image.
func (o *options) chosen() bool { return o.request.Bare() }

// unmarked reports whether -e has to name a conda environment: nothing precedes the two
// dashes, and no flag selects an environment. With an image, -e has docker's meaning.
func (o *options) unmarked(cmd *cobra.Command) bool {
	return !o.chosen() && o.many.file == "" && cmd.Flags().ArgsLenAtDash() == 0 && len(o.words()) > 0
}

// bare reports whether the task runs without an image. It uses the environment that the
// value of -e names.
func (o *options) bare(cmd *cobra.Command) (bool, error) {
	if !o.unmarked(cmd) {
		return o.chosen(), nil
	}
	list := o.words()
	if len(list) > 1 {
		return false, cli.Usagef("write --conda "+list[0]+"; then -e takes variables of yours", "-e %s: without an image one of them would be a conda environment", strings.Join(list, " -e "))
	}
	prefix, err := envs.Named(list[0])
	if err != nil {
		return false, err
	}
	o.request.Conda = prefix
	o.env = slices.DeleteFunc(slices.Clone(o.env), func(v string) bool { return v == list[0] })
	return true, nil
}

// batchLines returns warnings that carma ignores a script's lines for Slurm or gflow,
// with the equivalent flags.
func batchLines(program []string) []string {
	for _, word := range program[:min(len(program), 3)] { // bash -e job.sh
		if info, err := os.Stat(word); err != nil || !info.Mode().IsRegular() {
			continue
		}
		file, err := os.Open(word)
		if err != nil {
			continue
		}
		mark, flags := elsewhere.Directives(file)
		_ = file.Close()
		switch {
		case len(flags) > 0:
			return []string{"carma does not read the " + mark + " lines of " + word + "; as flags before the two dashes they are: " + strings.Join(flags, " ")}
		case mark != "":
			return []string{"carma does not read the " + mark + " lines of " + word}
		}
	}
	return nil
}

// named refuses a command line without an image, or with an image if none is allowed.
func (o *options) named(cmd *cobra.Command, args []string) error {
	dash := cmd.Flags().ArgsLenAtDash()
	switch without := o.chosen() || o.unmarked(cmd); {
	case !without && (len(args) == 0 || args[0] == ""):
		return cli.Usagef("write for example: carma run --mem 8G my/training:1, or without an image: carma run --conda exp -- python train.py", "no image named")
	case !without:
		return nil
	case len(args) == 0 || args[0] == "":
		return cli.Usagef("write for example: carma run --conda exp -- python train.py", "no program named")
	case dash < 0 && len(args) > 1 && args[1] == "--":
		return cli.Usagef("leave it out, or write -- before the program", "%s stands where an image would, and the task has none", args[0])
	}
	return nil
}

package root

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/elsewhere"
	"carma/cmd/carma/run"
	"carma/internal/suggest"
)

// wrongFlag turns pflag's message into a usage error with a hint.
func wrongFlag(cmd *cobra.Command, err error) error {
	if cmd.HasAvailableSubCommands() && cmd.Flags().NArg() > 0 {
		return cli.Unknown(cmd, cmd.Flags().Args()...) // its flags are unknown too
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if hint := theirFlag(cmd, name); hint != "" {
			return cli.Usagef(hint, "no flag %s", dashed(name, unknown.GetSpecifiedShortnames() != ""))
		}
		if unknown.GetSpecifiedShortnames() != "" {
			return cli.Usagef(cmd.CommandPath()+" --help lists the flags", "unknown flag -%s", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		hint := cmd.CommandPath() + " --help lists the flags"
		if near := suggest.Near(name, names); len(near) > 0 {
			hint = "did you mean --" + near[0] + "?"
		}
		return cli.Usagef(hint, "unknown flag --%s", name)
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		what := errors.Unwrap(value)
		if what == nil {
			what = errors.New("wrong value")
		}
		return cli.Usagef("", "--%s: %s", value.GetFlag().Name, plainNumber(what.Error(), value))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return cli.Usagef("", "--%s needs a value", missing.GetFlag().Name)
	}
	return cli.Usagef("", "%s", err.Error())
}

// plainNumber replaces the messages of package strconv.
func plainNumber(what string, e *pflag.InvalidValueError) string {
	if !strings.HasPrefix(what, "strconv.") {
		return what
	}
	kind := map[string]string{"int": "a whole number", "bool": "true or false", "float64": "a number", "uint64": "a whole number from 0 on"}[e.GetFlag().Value.Type()]
	return fmt.Sprintf("%q is not %s", e.GetValue(), kind)
}

func dashed(name string, short bool) string {
	if short {
		return "-" + name
	}
	return "--" + name
}

// theirFlag returns the alternative for a flag of docker run, or of another runner, that
// carma lacks.
func theirFlag(cmd *cobra.Command, name string) string {
	if cmd.Name() == "run" {
		if hint := run.DockerHint(name); hint != "" {
			return hint
		}
	}
	w, _ := elsewhere.Flag(cmd.Name(), name)
	return w.Hint()
}

package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/traces"
	"carma/configs/traces/original"
)

func convertCommand(a *cli.App) *cobra.Command {
	var to string
	var o original.Options
	cmd := &cobra.Command{
		Use:   "convert TRACE|SCRIPT.sh|TASK.rad [flags]",
		Short: "Turn the original's scripts into traces, and back",
		Long: `Turn a submit-and-sleep script of the original CARMA, with the .rad files that
it names, into a trace; or one .rad file into a trace; or a trace into such a
script and files. A trace that is turned into a script and back is the same.

The path of a .rad file is relative to the script's folder or the current one;
--rad names another folder. Without --rad, a missing file stands for the
catalogue's workload with its name. The catalogue has all workloads of the
original.`,
		Example: `  carma trace convert philly_trace-t1.sh --out t1.yaml
  carma trace convert old.sh --rad ~/CARMA/workloads --campaign v1
  carma trace convert philly-t1-60 --to script --out folder`,
		Args: oneInput,
	}
	flags := cmd.Flags()
	cli.ChoiceFlag(flags, &to, []string{"trace", "script"}, "to", "what to write: trace or script (default: trace)")
	flags.StringVar(&o.Rads, "rad", "", "the `folder` with the .rad files")
	campaignFlag(cmd, &o.Campaign)
	out := addOut(cmd, "the trace, or a script and a folder workloads in this folder,")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, err := readOriginal(a, args[0], o)
		if err != nil {
			return err
		}
		if to == "script" {
			return writeScript(a, t, out.path)
		}
		if err := out.check(args); err != nil {
			return err
		}
		told, err := write(a, out, func(w io.Writer) error { return traces.Write(w, t) })
		if err != nil {
			return err
		}
		return printLine(told, "%s: %d tasks, campaign %s", t.Name, len(t.Tasks), t.Campaign)
	}
	return cmd
}

func printLine(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(w, cli.Printable(fmt.Sprintf(format, args...)))
	return err
}

// readOriginal reads a script, a .rad file or a trace.
func readOriginal(a *cli.App, path string, o original.Options) (t traces.Trace, err error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".rad":
		t, err = original.ReadRad(path, o)
	case ".sh":
		f, openErr := open(a, path)
		if openErr != nil {
			return t, cli.Usagef("", "%v", openErr)
		}
		defer f.Close()
		t, err = original.ReadScript(path, f, o)
	default:
		if o.Rads != "" || o.Campaign != "" {
			return t, cli.Usagef("leave them out", "--rad and --campaign are for scripts (.sh) and .rad files")
		}
		t, err = traces.Read(path)
	}
	if err != nil {
		return t, cli.Usagef("", "%v", err)
	}
	return t, nil
}

// writeScript writes a script and its .rad files.
func writeScript(a *cli.App, t traces.Trace, folder string) error {
	if folder == "" {
		return cli.Usagef("write for example --out folder", "--to script: a script has files beside it, so it needs a folder")
	}
	files, err := original.FromTrace(t)
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	script := filepath.Join(folder, fileName(t.Name)+".sh")
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return cli.Usagef("name a new one", "--out: the folder %s is not empty", folder)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("", "--out: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "workloads"), 0o755); err != nil {
		return cli.Usagef("", "--out: %v", err)
	}
	if err := cli.ReplaceFile(script, files.Script.Write); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files.Rads)) {
		if err := cli.ReplaceFile(filepath.Join(folder, path), files.Rads[path].Write); err != nil {
			return err
		}
	}
	return printLine(a.Out, "%s: %d submissions, %d .rad files in %s", script, len(files.Script.Submits), len(files.Rads), filepath.Join(folder, "workloads"))
}

// fileName makes a file name that is valid on all systems.
func fileName(s string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s)
	if name = strings.TrimLeft(name, ".-"); name == "" {
		return "trace"
	}
	return name
}

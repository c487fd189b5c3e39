package suite

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/suite/compose"
	"carma/cmd/carma/taskfile"
	"carma/configs/suites"
	"carma/internal/suggest"
)

// named contains the flags that select a suite, and the settings for its files.
type named struct {
	name                      string
	files, envFiles, profiles []string
	// ended is set if removed helpers are included.
	ended bool
}

// flags adds the flags that name a suite. short is the short form of --file.
func (s *named) flags(f *pflag.FlagSet, short string) {
	f.StringVarP(&s.name, "project-name", "p", "", "`name` of the suite (default: the file's, else its folder's)")
	f.StringArrayVarP(&s.files, "file", short, nil, "a Compose `file`; several are merged, the later over the earlier")
	f.StringArrayVar(&s.envFiles, "env-file", nil, "read the file's variables from this `file` (default: .env beside it)")
}

// atMostOne refuses more than one FILE.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("write -f "+args[0]+" -f "+args[1]+" to merge them", "%d files named; a suite is one file", len(args))
	}
	if files, _ := cmd.Flags().GetStringArray("file"); len(files) > 0 && len(args) > 0 {
		return cli.Usagef("give one of them", "--file and the file %s", args[0])
	}
	return nil
}

// namedSuite accepts a file, or a name with -p, or files found by default. With more,
// further arguments are services.
func namedSuite(more bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if named := cmd.Flags().Changed("project-name"); named && len(args) > 0 && !more {
			return cli.Usagef("give one of them", "-p and the file %s", args[0])
		}
		if !more {
			if err := atMostOne(cmd, args); err != nil {
				return err
			}
		}
		return cli.NoEmpty(args)
	}
}

func completeFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// options returns the settings from outside the file, for the current folder.
func (s *named) options() (o compose.Options, err error) {
	o = compose.Options{Name: s.name, Profiles: s.profiles, Environ: os.Environ(), UID: os.Getuid(), GID: os.Getgid()}
	for _, path := range s.envFiles {
		o.EnvFiles = append(o.EnvFiles, cli.ExpandHome(path))
	}
	o.Folder, err = filepath.Abs(".")
	return o, err
}

// refs returns the files of a command line, and the remaining arguments. It returns none
// if no file is named and none is found.
func (s *named) refs(o compose.Options, args []string, more bool) (refs, rest []string, err error) {
	switch {
	case len(s.files) > 0:
		return s.files, args, nil
	case len(args) > 0 && (!more || isSuite(args[0])):
		return compose.WithOverride(args[0]), args[1:], nil
	}
	refs, err = compose.Find(o)
	if err != nil {
		return nil, nil, wrongFile(err)
	}
	if len(refs) == 0 && len(args) > 0 {
		return args[:1], args[1:], nil // its error reports that it is not a file
	}
	return refs, args, nil
}

// isSuite reports whether an argument names a file or a suite that ships with carma.
func isSuite(ref string) bool {
	if ref == "-" || slices.Contains(suites.Names(), ref) {
		return true
	}
	info, err := os.Stat(cli.ExpandHome(ref))
	return err == nil && !info.IsDir()
}

// sources contains the content of a suite's files, and the base of their relative paths.
type sources struct {
	compose.File // the first file; the others are in Over
	compose.Options
	// rest contains the arguments that name no file.
	rest []string
	// found contains the names of the files found by default.
	found []string
}

// open reads the Compose files that a command line selects; - is standard input. With
// more, arguments may also be services.
func (s *named) open(in io.Reader, args []string, more bool) (*sources, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	refs, rest, err := s.refs(o, args, more)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		return nil, errNoFile
	}
	out := &sources{Options: o, rest: rest}
	if len(s.files) == 0 && (len(args) == len(rest) || len(refs) > 1) {
		out.found = refs
	}
	for i, ref := range refs {
		f, folder, err := read(in, ref)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.Over = append(out.Over, f)
			continue
		}
		if out.File = f; folder != "" {
			out.Folder = folder
		}
	}
	return out, wrongFile(err)
}

var errNoFile = errors.New("no Compose file named")

// read reads one file. folder is the file's folder, or empty for the current one.
func read(in io.Reader, ref string) (f compose.File, folder string, err error) {
	f.Path = ref
	switch opened, err := os.Open(cli.ExpandHome(ref)); {
	case ref == "-":
		f.Path = "standard input"
	case err == nil:
		defer opened.Close()
		in, folder = opened, filepath.Dir(absolute(opened.Name()))
	default:
		shipped, name, ok := suites.Content(ref)
		if !ok {
			hint := "suites that come with carma: " + strings.Join(suites.Names(), ", ")
			if near := suggest.Near(ref, suites.Names()); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			return f, "", cli.Usagef(hint, "%s: %v", ref, cli.Reason(err))
		}
		f.Path, in = name, bytes.NewReader(shipped)
	}
	f.Content, err = compose.Read(f.Path, in)
	return f, folder, wrongFile(err)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// wrongFile turns an error in a file into a usage error.
func wrongFile(err error) error {
	var wrong *taskfile.Error
	if errors.As(err, &wrong) {
		return cli.Usagef("", "%v", err)
	}
	return err
}

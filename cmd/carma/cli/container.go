package cli

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"carma/runner/api"
)

// Environment reads --env-file and --env as docker does: KEY alone takes the caller's
// value, and is left out if there is none. Later values override earlier ones.
func Environment(files, vars []string) ([]string, error) {
	var env []string
	for _, path := range files {
		lines, err := envFile(path)
		if err != nil {
			return nil, err
		}
		env = append(env, lines...)
	}
	for _, v := range vars {
		if v == "" || v[0] == '=' {
			return nil, Usagef("write for example -e EPOCHS=3", "-e %q has no name", v)
		}
		env = appendVar(env, v)
	}
	return env, nil
}

func envFile(path string) ([]string, error) {
	f, err := os.Open(ExpandHome(path))
	if err != nil {
		return nil, Usagef("", "--env-file %s: %v", path, Reason(err))
	}
	defer f.Close()
	var env []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if !utf8.ValidString(line) {
			return nil, Usagef("", "--env-file %s:%d: not UTF-8", path, n)
		}
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line, "=")
		if name == "" || strings.ContainsAny(name, " \t") {
			return nil, Usagef("write KEY=value", "%s:%d: %q is not a variable's name", path, n, name)
		}
		env = appendVar(env, line)
	}
	if err := lines.Err(); err != nil {
		return nil, Usagef("", "--env-file %s: %v", path, Reason(err))
	}
	return env, nil
}

func appendVar(env []string, v string) []string {
	if strings.Contains(v, "=") {
		return append(env, v)
	}
	if value, ok := os.LookupEnv(v); ok {
		return append(env, v+"="+value)
	}
	return env
}

// plainModes lists docker's modes of a mounted folder that change nothing: the defaults,
// modes for systems other than Linux, and modes for SELinux, whose labels carma does not
// change.
var plainModes = []string{"rw", "rprivate", "cached", "delegated", "consistent", "z", "Z"}

// Mounts parses -v source:target[:ro|rw]. It makes sources absolute, because the daemon
// has another working folder and home.
func Mounts(args []string) ([]api.Mount, error) {
	var mounts []api.Mount
	for _, arg := range args {
		parts := strings.Split(arg, ":")
		if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
			return nil, Usagef("write for example -v ./data:/data:ro", "-v %s is not source:target", arg)
		}
		m := api.Mount{Source: parts[0], Target: parts[1]}
		if len(parts) == 3 {
			for mode := range strings.SplitSeq(parts[2], ",") {
				switch {
				case mode == "ro":
					m.ReadOnly = true
				case !slices.Contains(plainModes, mode):
					return nil, Usagef("it is ro or rw", "-v %s: unknown mode %q", arg, mode)
				}
			}
		}
		m, err := settled(m, "-v "+arg)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// Relabelled returns a line for each -v source:target:z, whose SELinux label carma does
// not change.
func Relabelled(args []string) (lines []string) {
	for _, arg := range args {
		if parts := strings.Split(arg, ":"); len(parts) == 3 && slices.ContainsFunc(strings.Split(parts[2], ","), func(mode string) bool { return mode == "z" || mode == "Z" }) {
			lines = append(lines, "-v "+arg+": not honoured: files get no new SELinux label")
		}
	}
	return lines
}

// settled returns a mount with an absolute source, or an error if source or target is
// invalid.
func settled(m api.Mount, flag string) (api.Mount, error) {
	if !filepath.IsAbs(m.Target) {
		return m, Usagef("it is a folder in the container", "%s: target %s is not absolute", flag, m.Target)
	}
	source, err := filepath.Abs(ExpandHome(m.Source))
	if err == nil {
		_, err = os.Stat(source)
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) { // the daemon may have more rights
		hint := ""
		if errors.Is(err, fs.ErrNotExist) && !strings.Contains(m.Source, "/") {
			hint = "carma mounts folders and has no named volumes; write for example ./" + m.Source
		}
		return m, Usagef(hint, "%s: %s: %v", flag, source, Reason(err))
	}
	m.Source = source
	return m, nil
}

// ExpandHome replaces a leading ~ by the home folder.
func ExpandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}

// Reason returns the cause of an error, without the operation and the file.
func Reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Labels parses labels, key=value.
func Labels(args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if key == "" {
			return nil, Usagef("write for example -l sweep=7", "label %q has no key", arg)
		}
		all[key] = value
	}
	return all, nil
}

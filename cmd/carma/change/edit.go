package change

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/taskfile"
	"carma/runner/api"
)

const editHead = `# Task %s as a task file (carma run -f; docs/tasks.md). Change what the new task is
# to have, save and leave; it is submitted then. Without a change nothing is submitted.
`

// edit opens a submission as a task file in the user's editor, and returns the edited
// one. Fields that the file lacks keep their values. task is the user's name for the
// task.
func edit(a *cli.App, s *api.Submit, task string) error {
	content, err := taskfile.Write(s)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "carma") // readable only by this user, because it contains the environment
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "task.yaml")
	content = append(fmt.Appendf(nil, editHead, task), content...)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	if err := runEditor(a, path); err != nil {
		return err
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if bytes.Equal(changed, content) {
		return cli.Usagef("carma rerun "+task+" runs it again as it was", "nothing was changed and nothing submitted")
	}
	before, err := read(content)
	if err != nil {
		return fmt.Errorf("what carma wrote for the editor: %w", err)
	}
	after, err := read(changed)
	if err != nil {
		return cli.Usagef("nothing was submitted", "%v", err)
	}
	overlay(s, before, after)
	return nil
}

// runEditor runs the user's editor on a file: VISUAL, else EDITOR, else vi.
func runEditor(a *cli.App, path string) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", path) // the variable may contain arguments: code --wait
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Err, a.Err
	if err := cmd.Run(); err != nil {
		return cli.Usagef("EDITOR names another; nothing was submitted", "the editor %s: %v", editor, err)
	}
	return nil
}

// read reads an edited file, which must have one task.
func read(content []byte) (*api.Submit, error) {
	file, err := taskfile.Parse("task.yaml", content)
	if err != nil {
		return nil, err
	}
	if len(file.Tasks) != 1 || file.Tasks[0].Count() != 1 || len(file.Tasks[0].Submit.After) > 0 {
		return nil, fmt.Errorf("one task is run again, without array, sweep and after; carma run -f FILE submits several")
	}
	t := &file.Tasks[0]
	if t.Submit.Env, err = cli.Environment(t.EnvFiles, t.Submit.Env); err != nil {
		return nil, err
	}
	if t.Submit.Mounts, err = cli.Mounts(t.Volumes); err != nil {
		return nil, err
	}
	return &t.Submit, nil
}

// overlay applies the differences between two submissions to a third one.
func overlay(s, before, after *api.Submit) {
	for _, f := range api.Fields() {
		switch {
		case !f.Differs(before, after):
		case f.Given(after):
			f.Take(s, after)
		default:
			f.Clear(s)
		}
	}
	replace(&s.Image, before.Image, after.Image)
	replace(&s.Command, before.Command, after.Command)
	replace(&s.Entrypoint, before.Entrypoint, after.Entrypoint)
	replace(&s.Env, before.Env, after.Env)
	replace(&s.Mounts, before.Mounts, after.Mounts)
	replace(&s.Labels, before.Labels, after.Labels)
	if !slices.Equal(before.Command, after.Command) { // the settings came from the old command
		if s.Read = nil; s.EstModel == "" {
			s.Network = nil
		}
	}
}

// replace sets a value if after differs from before.
func replace[T any](to *T, before, after T) {
	if !reflect.DeepEqual(before, after) {
		*to = after
	}
}

// Package standin makes a program that simulates nvidia-smi for tests: its memory limits,
// as NVIDIA's guide describes them, and its version. The program is a shell script that
// stores its state in a folder.
package standin

import (
	_ "embed" // the script
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed nvidia-smi.sh
var script string

// SMI is a simulated nvidia-smi.
type SMI struct {
	// Path is the program.
	Path string
	dir  string
}

// New makes a simulated nvidia-smi in dir, of the given driver version, for a machine
// whose /sys is below root.
func New(dir, root, version string) (*SMI, error) {
	s := &SMI{Path: filepath.Join(dir, "nvidia-smi"), dir: dir}
	text := strings.NewReplacer("@DIR@", dir, "@ROOT@", root, "@VERSION@", version).Replace(script)
	return s, os.WriteFile(s.Path, []byte(text), 0o755)
}

// Note writes a line into the list of calls, to show their order relative to other
// events.
func (s *SMI) Note(line string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "calls"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return err
	}
	return f.Close()
}

// Calls returns the calls that set limits, and the notes, in order.
func (s *SMI) Calls() (out []string, err error) {
	b, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.TrimSpace(line))
	}
	return out, err
}

// Guaranteed returns the memory of a GPU that the topmost groups guarantee, in MiB. It
// falls only when the program lowers a soft limit.
func (s *SMI) Guaranteed(gpu string) (int, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, "reserved."+gpu))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// Break sets whether the program refuses to set limits from now on.
func (s *SMI) Break(broken bool) error {
	file := filepath.Join(s.dir, "broken")
	if broken {
		return os.WriteFile(file, nil, 0o644)
	}
	return os.Remove(file)
}

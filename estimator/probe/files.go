package probe

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed python/sitecustomize.py python/carma_probe/*.py
var python embed.FS

// install writes the probe's Python files to a sub-folder of folder, and returns it. Each
// version of the files has its own sub-folder and is written once. Everybody may read it,
// because the program runs as its submitter.
func install(folder string) (string, error) {
	sum := sha256.New()
	files := map[string][]byte{}
	err := fs.WalkDir(python, "python", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := python.ReadFile(name)
		rel, _ := filepath.Rel("python", name)
		files[rel] = data
		sum.Write([]byte(rel))
		sum.Write(data)
		return err
	})
	if err != nil {
		return "", err
	}
	final := filepath.Join(folder, "probe-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(folder, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
		if err := os.Chmod(filepath.Dir(path), 0o755); err != nil { // regardless of the umask
			return "", err
		}
		if err := os.Chmod(path, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	// Another process may have been faster; its files are the same.
	if err := os.Rename(dir, final); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, stat := os.Stat(final); stat != nil {
			return "", err
		}
	}
	return final, nil
}

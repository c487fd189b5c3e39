package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Writable checks that a file can be written at a path. If the path is a link, Writable
// replaces it by the link's target.
func Writable(path *string, inputs []string) error {
	name := *path
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	there, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.IsDir():
		return fmt.Errorf("%s is a folder", *path)
	case !there.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", *path)
	}
	for _, input := range inputs {
		if in, err := os.Stat(input); err == nil && os.SameFile(in, there) {
			return fmt.Errorf("%s is the trace itself", *path)
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(name), ".carma-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", *path, errors.Unwrap(err))
	}
	*path = name
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// ReplaceFile writes the complete content to a path, or leaves the old file. If the path
// is not a regular file (a pipe), ReplaceFile writes to it directly.
func ReplaceFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := partFile(path)
	if err != nil {
		return err
	}
	part := f.Name()
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// partFile makes a new file next to a path. Unlike a file from os.CreateTemp, its
// permissions depend on the umask.
func partFile(path string) (f *os.File, err error) {
	for n := range 100 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.part", filepath.Base(path), n))
		f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

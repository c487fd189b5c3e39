package main

import (
	"os"
	"path/filepath"

	"carma/configs/models"
)

// writeModel writes a configuration; an interrupted write leaves the file
// that was there.
func writeModel(path string, c *models.Config) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.Write(f)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".carma-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := c.Write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

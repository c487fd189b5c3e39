// Package networks finds the network that a word or a file means: a name of the
// catalogue, a model configuration, an ONNX file, or the summary of a module.
package networks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"carma/configs/models"
	"carma/estimator/networks/onnxfile"
	"carma/estimator/networks/summary"
	"carma/estimator/networks/zoo"
)

// Find returns the network that ref names: a file, else a model of the
// catalogue. The error is of kind [fs.ErrNotExist] if it is neither.
func Find(ref string, o models.Overrides) (*models.Config, error) {
	if zoo.Known(ref) && !IsFile(ref) {
		return zoo.Build(ref, o)
	}
	return ReadFile(ref, o)
}

// IsFile tells whether path is a file: it is meant before a model of the
// catalogue with that name.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ReadFile reads a file; see [Read].
func ReadFile(path string, o models.Overrides) (*models.Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(path, f, o)
}

// Read makes a configuration of what r gives: a configuration, an ONNX file, or
// a summary, which its content tells. Name is the file's, for messages and for
// the model's name. The sizes in o are for files that do not tell them. The
// result is valid; its Warnings say what was assumed.
func Read(name string, r io.Reader, o models.Overrides) (*models.Config, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if onnxfile.Recognized(b) {
		if f, ok := r.(io.ReadSeeker); ok {
			if _, err := f.Seek(0, io.SeekStart); err == nil {
				return onnxfile.Import(name, f, o)
			}
		}
		return onnxfile.Import(name, b, o) // a pipe
	}
	text, err := io.ReadAll(io.LimitReader(b, models.MaxFile+1))
	if err == nil && len(text) == 0 {
		err = &models.Error{What: "empty; give a model's configuration or summary"}
	}
	if err != nil {
		return nil, in(name, err)
	}
	if trimmed := bytes.TrimSpace(text); len(text) > models.MaxFile || len(trimmed) > 0 && trimmed[0] == '{' {
		c, err := models.Read(name, bytes.NewReader(text)) // says it if the text is too large
		if err != nil {
			return nil, err
		}
		c, err = c.With(o)
		return c, in(name, err)
	}
	return summary.Import(name, string(text), o)
}

// in says which file an error is in.
func in(name string, err error) error {
	if e, ok := errors.AsType[*models.Error](err); ok {
		e.File = name
		return e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

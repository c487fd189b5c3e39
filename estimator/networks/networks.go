// Package networks finds the network that a name or a file stands for: names of the
// catalogue and of models of the hub, model configurations, and config.json of the
// transformers library.
package networks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/networks/named"
)

// Find returns the network of ref: of a file, of a folder with a config.json, or else of
// a name. If ref is none of these, the error is of kind [fs.ErrNotExist]. A safetensors
// file stands for the config.json next to it.
func Find(ref string, o models.Overrides) (*models.Config, error) {
	if config, weights := weighed(ref); IsFile(config) {
		return readWeighed(config, weights, o)
	}
	if Weights(ref) != "" {
		return nil, fmt.Errorf("%s: safetensors files have no layers; put the config.json beside them, or estimate by their parameters: carma estimate %s --family transformer --batch 1", ref, ref)
	}
	if named.Known(ref) && !IsFile(ref) {
		return named.Build(ref, o)
	}
	if info, err := os.Stat(ref); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder without a config.json", ref)
	}
	return ReadFile(ref, o)
}

// IsFile reports whether path is a file. A file takes precedence over a model of the
// catalogue with the same name.
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

// Read reads a network from r: a configuration, or a config.json of the transformers
// library. It recognizes the format by the content. name is the name of the file, used in
// messages and as the model's name. The sizes in o apply if the file has none. The result
// is valid; its Warnings list the assumptions.
func Read(name string, r io.Reader, o models.Overrides) (*models.Config, error) {
	text, err := io.ReadAll(io.LimitReader(r, models.MaxFile+1))
	switch {
	case err != nil:
	case len(text) == 0:
		err = &models.Error{What: "empty; give a model configuration or a config.json of transformers"}
	case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && len(text) <= models.MaxFile:
		err = &models.Error{What: notJSON(text)}
	}
	if err != nil {
		return nil, in(name, err)
	}
	if hf.Recognized(text) {
		c, err := hf.Read(titled(name), text, o)
		return c, in(name, err)
	}
	c, err := models.Read(name, bytes.NewReader(text)) // this fails with a message if the text is too large
	if err != nil {
		return nil, err
	}
	c, err = c.With(o)
	return c, in(name, err)
}

// notJSON returns an error about a file that is not JSON, such as an ONNX file or the
// printed summary of a module, with an alternative. Such files contain too little about
// the training.
func notJSON(text []byte) string {
	kind := "neither a model configuration nor a config.json of transformers"
	if !utf8.Valid(text[:min(len(text), 512)]) || bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0 || text[0] < '\t' {
		kind = "a binary file (ONNX files are not read), not JSON"
	}
	return kind + "; estimate the program itself (carma estimate --probe IMAGE -- COMMAND), or by --params, --batch and --family"
}

// titled returns the model's name for a file. For a config.json it is the folder's name.
func titled(name string) string {
	if filepath.Base(name) == "config.json" {
		if folder := filepath.Base(filepath.Dir(name)); folder != "." && folder != string(filepath.Separator) {
			return folder
		}
	}
	return filepath.Base(name)
}

// in adds the file's name to an error.
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

package networks

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"carma/configs/models"
	"carma/estimator/networks/described"
	"carma/estimator/networks/hf"
)

// Description is a submission's description of the network in a file.
type Description struct {
	// Name is the model's name in messages.
	Name string
	// Network is the input of [described.Read].
	Network json.RawMessage
	// Settings are the remaining settings. An import has already applied the settings that
	// change layers.
	Settings models.Overrides
	// Warnings list the assumptions.
	Warnings []string
}

// Describe reads the network of a file, or of a folder with a config.json, and describes
// it. It refuses a network that cannot be built with these settings. Of a config.json it
// keeps the fields that matter, with a summary of the safetensors files next to it. All
// other files become layers. As in [Find], a safetensors file stands for the config.json
// next to it.
func Describe(path string, o models.Overrides) (*Description, error) {
	config, weights := weighed(path)
	if IsFile(config) {
		path = config
	} else {
		weights = ""
	}
	text, err := configText(path)
	if err != nil {
		return nil, err
	}
	c, err := readWeighed(path, weights, o)
	if err != nil {
		return nil, err
	}
	d := &Description{Name: titled(path), Settings: o, Warnings: c.Warnings}
	if text != nil {
		w, _, err := weightsOf(weights)
		if err == nil {
			d.Network, err = described.OfConfig(text, w, o)
		}
		return d, in(path, err)
	}
	d.Settings = o.WithoutLayers()
	c.Warnings = nil
	d.Network, err = described.OfLayers(c)
	return d, in(path, err)
}

// configText returns the content of a config.json of the transformers library, or nil for
// other files.
func configText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, hf.MaxFile+1))
	switch {
	case err != nil:
		return nil, in(path, err)
	case hf.Recognized(text):
		return text, nil
	case filepath.Base(path) == "config.json" && len(text) > hf.MaxFile:
		return nil, in(path, &models.Error{What: "larger than 1 MiB; a config.json has some kilobytes"})
	case filepath.Base(path) == "config.json" && len(text) > 0 && !json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		_, err := hf.Compact(text, models.Overrides{}) // for its error message
		return nil, in(path, err)
	}
	return nil, nil
}

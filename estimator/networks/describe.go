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

// Description is what a submission says of the network of a file.
type Description struct {
	// Name is for people.
	Name string
	// Network is what [described.Read] reads.
	Network json.RawMessage
	// Settings are those that are left: an import has used up those that change layers.
	Settings models.Overrides
	// Warnings tell what was assumed.
	Warnings []string
}

// Describe reads the network of a file, or of a folder with a config.json, and describes
// it. It refuses what cannot be built with these settings. Of a config.json the fields
// that matter are kept, and what the safetensors files beside it store; all other files
// become layers. As for [Find], a safetensors file stands for the config.json beside it.
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

// configText is the content of a config.json of the transformers library; nil: the file
// is another.
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
		_, err := hf.Compact(text, models.Overrides{}) // which says what is wrong with it
		return nil, in(path, err)
	}
	return nil, nil
}

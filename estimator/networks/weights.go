package networks

import (
	"path/filepath"

	"carma/configs/models"
	"carma/estimator/networks/described"
	"carma/estimator/networks/named"
	"carma/estimator/networks/safetensors"
)

// Weights returns the safetensors file or index that ref names or that is in the folder
// ref, or "" if there is none.
func Weights(ref string) string {
	if safetensors.Is(ref) && IsFile(ref) {
		return ref
	}
	return safetensors.In(ref)
}

// WeightsAlone returns the same as [Weights], but only if there is no config.json next to
// it and ref is no model's name.
func WeightsAlone(ref string) string {
	config, weights := weighed(ref)
	if IsFile(config) || named.Known(ref) && !IsFile(ref) {
		return ""
	}
	return weights
}

// weighed returns the config.json of ref and the weights next to it.
func weighed(ref string) (config, weights string) {
	weights = Weights(ref)
	if safetensors.Is(ref) {
		ref = filepath.Dir(ref)
	}
	return filepath.Join(ref, "config.json"), weights
}

// Count counts the parameters in a file of weights without a network next to it; see
// [WeightsAlone]. The notes list facts that the headers lack.
func Count(path string) (w *described.Weights, notes []string, err error) {
	w, notes, err = weightsOf(path)
	if err == nil && w == nil {
		err = &models.Error{File: path, What: "no parameters in it"}
	}
	return w, notes, err
}

// weightsOf returns the summary of a file of weights, or nil if path is empty. The notes
// list facts that the headers lack.
func weightsOf(path string) (w *described.Weights, notes []string, err error) {
	if path == "" {
		return nil, nil, nil
	}
	read, err := safetensors.Read(path)
	if err != nil {
		return nil, nil, err
	}
	if read.Parameters == 0 {
		return nil, append(read.Notes, models.Clip(filepath.Base(path))+" has no parameters"), nil
	}
	w = &described.Weights{File: models.Clip(filepath.Base(path))}
	for _, t := range read.Types {
		w.Types = append(w.Types, described.Stored(t))
	}
	return w, read.Notes, nil
}

// readWeighed reads a config.json, or a network in a file of that name, with the weights
// next to it.
func readWeighed(config, weights string, o models.Overrides) (*models.Config, error) {
	w, notes, err := weightsOf(weights)
	if err != nil {
		return nil, err
	}
	c, err := w.Build(o, func(o models.Overrides) (*models.Config, error) { return ReadFile(config, o) })
	if err == nil {
		c.Warnings = append(c.Warnings, notes...)
	}
	return c, err
}

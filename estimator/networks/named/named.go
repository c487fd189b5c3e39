// Package named builds the networks that have a name: networks of the catalogue, and
// models of the hub. It reads no files, so the daemon can import it.
package named

import (
	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/networks/zoo"
)

// Known reports whether [Build] accepts a name.
func Known(name string) bool { return zoo.Known(name) || hf.Known(name) }

// Build builds the named network. Models of the hub take precedence, because the
// catalogue treats the text after a slash as a data set.
func Build(name string, o models.Overrides) (*models.Config, error) {
	if hf.Known(name) {
		return hf.Build(name, o)
	}
	return zoo.Build(name, o)
}

// All lists the models of the catalogue, then the models of the hub.
func All() []string { return append(zoo.Names(), hf.Names()...) }

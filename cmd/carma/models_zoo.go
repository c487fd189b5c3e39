package main

import (
	"carma/configs/models"
	networks "carma/configs/models/zoo"
)

// zoo is the catalogue of parametric families.
var zoo = struct {
	names func() []string
	known func(name string) bool
	build func(name string, o models.Overrides) (*models.Config, error)
}{networks.Names, networks.Known, networks.Build}

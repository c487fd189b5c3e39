package main

import (
	"carma/configs/models"
	catalogue "carma/configs/models/zoo"
)

// zoo is the catalogue of parametric families.
var zoo = struct {
	names func() []string
	build func(name string, o models.Overrides) (*models.Config, error)
}{catalogue.Names, catalogue.Build}

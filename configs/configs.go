// Package configs contains the files that ship with carma, or that people edit, as data:
// the example of a configuration file here, and server descriptions, workload profiles,
// model configurations, traces and suites in its sub-packages, with their loaders. It
// imports neither the mapper, nor the runner, nor the containers: they, or the commands,
// convert the data. The daemon's settings are in cmd/carma/settings.
package configs

import _ "embed" // the example file

// Example is a configuration file with every key, its default and its description.
//
//go:embed carma.example.yaml
var Example string

// Package configs has carma's typed configuration: the settings, their defaults,
// and where each value comes from. The files that ship with carma (server
// descriptions, workload profiles, traces) are in its sub-packages.
//
// The first of these places that has a value counts: a command-line flag, the
// environment (CARMA_POLICY for policy), ~/.config/carma/config.yaml,
// /etc/carma/config.yaml, the default. Only package cmd reads the configuration.
// It gives every other package that package's own options.
package configs

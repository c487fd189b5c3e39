// Package configs contains carma's typed configuration: the settings, their defaults, and
// the origin of each value. The files that ship with carma (server descriptions, workload
// profiles, traces) are in its sub-packages.
//
// The first of these places with a value counts: a command-line flag, the environment
// (CARMA_POLICY for policy), ~/.config/carma/config.yaml, /etc/carma/config.yaml, the
// default. Only package cmd reads the configuration. It passes every other package the
// options of that package.
package configs

// Package settings contains the daemon's settings: their names, their defaults, and the
// origin of each value. Clients use some of them. The options of the mapper are in package
// rules.
//
// The first of these places with a value counts: a command-line flag, the environment
// (CARMA_POLICY for policy), ~/.config/carma/config.yaml, /etc/carma/config.yaml, the
// default. Only package cmd reads the configuration. It passes every other package the
// options of that package.
package settings
